"""An event loop in whose time nothing takes long: where it would wait, the time goes on instead.

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(a_day_of_work())

Ordinary asyncio code runs on it unchanged. The loop works through everything that is ready; when
nothing is, it does not sleep but sets its time to the moment of the next timer. So idleness is
exact, every sleep, timeout and back-off is virtual, and the same work happens in the same order
every time, because nothing outside of the process has a say: sockets, pipes, child processes,
executors and other threads are refused with `OutsideError`. When nothing is ready and no timer is
set, nothing will ever happen again; that is a `StandstillError` with the tasks that wait.
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
"""A timer that is closer than this is due."""
_SLACK = 1e-7
"""Moments that are closer to each other than this are one: sums of seconds are not exact."""
_TASKS_NAMED = 8


class OutsideError(RuntimeError):
    """Something in virtual time wants what only real time has."""


class StandstillError(RuntimeError):
    """Everybody waits for somebody else, in virtual time."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose waiting moves its clock. Its time starts at 0."""

    def __init__(self) -> None:
        self._now = 0.0
        self._moments: list[float] = []
        self._idlers: list[asyncio.Future[None]] = []
        self._thread = threading.get_ident()
        self._selector_of_time = _TimeSelector(self._wait)
        super().__init__(self._selector_of_time)
        self._selector_of_time.closed_to_others = True
        self._clock_resolution = _RESOLUTION

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    def call_at(
        self,
        when: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call something at a moment, which time will stop at."""
        heapq.heappush(self._moments, when)
        return super().call_at(when, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """Only for signal handlers: in another thread, real time goes by."""
        if threading.get_ident() != self._thread:
            raise OutsideError("virtual time does not wait for other threads")
        return super().call_soon_threadsafe(callback, *args, context=context)

    async def idle(self) -> None:
        """Return when nobody has anything left to do at this moment."""
        waiter = self.create_future()
        self._idlers.append(waiter)
        await waiter

    def _wait(self, seconds: float | None) -> None:
        """Let so much time go by; exactly to the timer that is due then, if there is one."""
        if self._idlers:
            self._tell_idle()
            return
        self._forget_moments(self._now)
        if seconds is None or self._moments[:1] == [math.inf]:  # who sleeps for ever is not woken
            raise StandstillError(_standstill(asyncio.all_tasks(self)))
        target = self._now + seconds
        self._forget_moments(target - _SLACK)
        if self._moments and self._moments[0] <= target + _SLACK:
            target = self._moments[0]
        self._now = max(self._now, target)

    def _forget_moments(self, until: float) -> None:
        """Those that have come, or whose timers were cancelled."""
        while self._moments and self._moments[0] <= until:
            heapq.heappop(self._moments)

    def _tell_idle(self) -> None:
        idlers, self._idlers = self._idlers, []
        for waiter in idlers:
            if not waiter.done():
                waiter.set_result(None)


class _TimeSelector(selectors.DefaultSelector):
    """Has nothing to select from but the loop's own wake-up call, which signals use."""

    def __init__(self, wait: Callable[[float | None], None]) -> None:
        super().__init__()
        self._wait = wait
        self.closed_to_others = False

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Refuse whatever is not the loop's own."""
        if self.closed_to_others:
            raise OutsideError("virtual time does not wait for sockets and pipes")
        return super().register(fileobj, events, data)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Do not wait: where nothing is ready, let time go by."""
        if timeout is not None and timeout <= 0:
            return []
        ready = super().select(0)
        if not ready:
            self._wait(timeout)
        return ready


def _standstill(tasks: set[asyncio.Task[Any]]) -> str:
    names = sorted(task.get_name() for task in tasks)
    more = f" and {len(names) - _TASKS_NAMED} more" if len(names) > _TASKS_NAMED else ""
    waiting = ", ".join(names[:_TASKS_NAMED]) + more
    return f"nothing will ever happen again in this virtual time; waiting: {waiting or 'nobody'}"


def _refusal(what: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise OutsideError(f"virtual time does not wait for {what}")

    return refuse


_REAL: Mapping[str, str] = {
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
for _name, _what in _REAL.items():
    setattr(VirtualLoop, _name, _refusal(_what))
