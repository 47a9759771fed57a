"""Signals that end a program: a daemon's work is cancelled, other work is interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Coroutine, Iterator
from typing import Self

log = logging.getLogger(__name__)


def termination_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that end a program: SIGINT, SIGTERM and, without `nohup`, SIGHUP."""
    ends = (signal.SIGINT, signal.SIGTERM)
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return ends if ignored else (*ends, signal.SIGHUP)


async def run_until_signal(work: Coroutine[object, object, None]) -> None:
    """Run work until it ends or a signal that ends programs comes; then cancel it and wait.

    The first signal cancels the work, which ends in order. A second one cancels its clean-up, too.
    From then on signals have their default effect: a third one kills the process.
    """
    task = asyncio.ensure_future(work)
    with _Shutdown(task) as shutdown, contextlib.suppress(asyncio.CancelledError):
        await task
    if task.cancelled() and not shutdown.has_begun:
        raise asyncio.CancelledError


class _Shutdown:
    """Cancels a task on the first signal, and its clean-up on the second."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self.has_begun = False
        self._task = task
        self._loop = asyncio.get_running_loop()
        self._handlers = {number: signal.getsignal(number) for number in termination_signals()}

    def __enter__(self) -> Self:
        for number in self._handlers:
            self._loop.add_signal_handler(number, self._receive, number)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            self._loop.remove_signal_handler(number)
            signal.signal(number, handler)

    def _receive(self, number: signal.Signals) -> None:
        if self.has_begun:
            log.warning("received %s during shutdown, ending without clean-up", number.name)
            self._let_signals_kill()
        else:
            log.info("received %s, shutting down", number.name)
            self.has_begun = True
        self._task.cancel()

    def _let_signals_kill(self) -> None:
        for number in self._handlers:
            self._loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let every signal that ends programs interrupt the body as Ctrl-C does."""
    received: list[int] = []

    def interrupt(number: int, _: object) -> None:
        received.append(number)
        signal.raise_signal(signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    others = [number for number in termination_signals() if number is not signal.SIGINT]
    with _blocked_if_ignored():
        before = [signal.signal(number, interrupt) for number in others]
        try:
            yield
        finally:
            for number, handler in zip(others, before, strict=True):
                signal.signal(number, handler)
    if received:
        raise KeyboardInterrupt  # clean-up code may have suppressed the first one


@contextlib.contextmanager
def _blocked_if_ignored() -> Iterator[None]:
    """Block SIGINT where it is ignored, as in a script's background jobs.

    Event loops handle SIGINT, by cancelling what they run, only if it has Python's own handler.
    """
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
