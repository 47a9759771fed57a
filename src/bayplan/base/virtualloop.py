"""An event loop in virtual time: instead of waiting, it moves its clock forward.

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(simulate_a_day())

Ordinary asyncio code runs on it unchanged. The loop runs every callback that is ready; when none
is, it does not sleep but sets its time to the next timer. So every sleep, timeout and backoff is
virtual, and a run is deterministic, because nothing outside the process can influence it: sockets,
pipes, child processes, executors and other threads are refused with `RealTimeOperationError`. When
no callback is ready and no timer is set, the loop raises `DeadlockError` with the waiting tasks.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import selectors
import threading
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import Any, NoReturn, TypeVarTuple

Ts = TypeVarTuple("Ts")
_RESOLUTION = 1e-6
"""A timer that is due within this many seconds is due now."""
_SLACK = 1e-7
"""Times closer to each other than this are the same: sums of floats are not exact."""
_TASKS_NAMED = 8


class RealTimeOperationError(RuntimeError):
    """An operation that needs real time, such as I/O or a thread, on a virtual event loop."""


class DeadlockError(RuntimeError):
    """All tasks on a virtual event loop wait, and no timer will wake one."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop that moves its clock instead of waiting; its time starts at 0."""

    def __init__(self) -> None:
        self._now = 0.0
        self._timer_times: list[float] = []
        self._idle_waiters: list[asyncio.Future[None]] = []
        self._thread = threading.get_ident()
        self._time_selector = _TimeSelector(self._wait)
        super().__init__(self._time_selector)
        self._time_selector.is_sealed = True
        self._clock_resolution = _RESOLUTION

    def time(self) -> float:
        """Return the virtual seconds since the loop was created."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call a function at a time, at which the clock will stop."""
        heapq.heappush(self._timer_times, when)
        return super().call_at(when, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Allow signal handlers only: other threads run in real time."""
        if threading.get_ident() != self._thread:
            raise RealTimeOperationError("other threads cannot be used in virtual time")
        return super().call_soon_threadsafe(callback, *args, context=context)

    async def idle(self) -> None:
        """Return when no task has anything left to do at the current time."""
        waiter = self.create_future()
        self._idle_waiters.append(waiter)
        await waiter

    def _wait(self, seconds: float | None) -> None:
        """Move the clock by so many seconds, exactly to the timer that is due then, if any."""
        if self._idle_waiters:
            self._wake_idle_waiters()
            return
        self._drop_times(self._now)
        if seconds is None or self._timer_times[:1] == [math.inf]:  # an infinite sleep never ends
            raise DeadlockError(_deadlock_message(asyncio.all_tasks(self)))
        target = self._now + seconds
        self._drop_times(target - _SLACK)
        if self._timer_times and self._timer_times[0] <= target + _SLACK:
            target = self._timer_times[0]
        self._now = max(self._now, target)

    def _drop_times(self, until: float) -> None:
        """Drop timer times that are past, or whose timers were cancelled."""
        while self._timer_times and self._timer_times[0] <= until:
            heapq.heappop(self._timer_times)

    def _wake_idle_waiters(self) -> None:
        waiters, self._idle_waiters = self._idle_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class _TimeSelector(selectors.DefaultSelector):
    """A selector for nothing but the loop's own wake-up socket, which signals use."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        super().__init__()
        self._wait = wait
        self.is_sealed = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Refuse file objects other than the loop's own."""
        if self.is_sealed:
            raise RealTimeOperationError("sockets and pipes cannot be used in virtual time")
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return what is ready without waiting; if nothing is, move the clock."""
        if timeout is not None and timeout <= 0:
            return []
        ready = super().select(0)
        if not ready:
            self._wait(timeout)
        return ready


def _deadlock_message(tasks: set[asyncio.Task[Any]]) -> str:
    names = sorted(task.get_name() for task in tasks)
    more = f" and {len(names) - _TASKS_NAMED} more" if len(names) > _TASKS_NAMED else ""
    waiting = ", ".join(names[:_TASKS_NAMED]) + more
    return f"all tasks wait and no timer is set in virtual time; waiting tasks: {waiting or 'none'}"


def _refusal(what: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise RealTimeOperationError(f"{what} cannot be used in virtual time")

    return refuse


_REFUSED: Mapping[str, str] = {
    "run_in_executor": "threads",
    "create_connection": "connections",
    "create_server": "connections",
    "create_unix_connection": "connections",
    "create_unix_server": "connections",
    "create_datagram_endpoint": "connections",
    "connect_accepted_socket": "connections",
    "start_tls": "connections",
    "sendfile": "connections",
    "sock_connect": "connections",
    "sock_accept": "connections",
    "sock_recv": "connections",
    "sock_recv_into": "connections",
    "sock_recvfrom": "connections",
    "sock_recvfrom_into": "connections",
    "sock_sendall": "connections",
    "sock_sendto": "connections",
    "sock_sendfile": "connections",
    "getaddrinfo": "name servers",
    "getnameinfo": "name servers",
    "connect_read_pipe": "pipes",
    "connect_write_pipe": "pipes",
    "subprocess_exec": "child processes",
    "subprocess_shell": "child processes",
}
for _name, _what in _REFUSED.items():
    setattr(VirtualLoop, _name, _refusal(_what))
