"""An end in order for work that is not a daemon's."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from bayplan.client.daemon import ending_signals


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Have whatever ends programs end it as Ctrl-C does: what is open is closed."""
    others = [one for one in ending_signals() if one is not signal.SIGINT]
    before = [signal.signal(one, lambda *_: signal.raise_signal(signal.SIGINT)) for one in others]
    try:
        yield
    finally:
        for one, handler in zip(others, before, strict=True):
            signal.signal(one, handler)
