"""Signals that end a program: a daemon's work is cancelled, other work is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Coroutine, Iterator


def ending_signals() -> tuple[signal.Signals, ...]:
    """What ends a program in order: also that its terminal was closed, unless `nohup` runs it."""
    ends = (signal.SIGINT, signal.SIGTERM)
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return ends if ignored else (*ends, signal.SIGHUP)


async def until_signalled(work: Coroutine[object, object, None]) -> None:
    """Run that to its end; on a signal that ends programs cancel it, and see it end in order."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    stopping = False

    def stop() -> None:
        nonlocal stopping
        stopping = True
        task.cancel()

    signals = ending_signals()
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
    if task.cancelled() and not stopping:
        raise asyncio.CancelledError


@contextlib.contextmanager
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
