"""An end in order for work that is not a daemon's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from bayplan.client.daemon import ending_signals


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have whatever ends programs end it as Ctrl-C does: what is open is closed."""
    came: list[int] = []

    def interrupt(number: int, _: object) -> None:
        came.append(number)
        _interrupt()

    others = [one for one in ending_signals() if one is not signal.SIGINT]
    before = [signal.signal(one, interrupt) for one in others]
    try:
        yield
    finally:
        for one, handler in zip(others, before, strict=True):
            signal.signal(one, handler)
    if came:
        raise KeyboardInterrupt  # whoever was busy tidying up may have missed it


def _interrupt() -> None:
    """As Ctrl-C, also where that is not heard: what a script starts beside itself is deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)
