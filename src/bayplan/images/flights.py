"""Work that several callers share, and work that must not be cut in the middle.

`Flights` gives each key at most one piece of work under way: whoever asks for the same key
meanwhile waits for it. A follower whose leader failed tries for itself, because the leader's
failure may be its own (other credentials, a cancelled call). Work nobody waits for any more is
cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")
_Key = TypeVar("_Key", bound=Hashable)


class _Flight(Generic[_Result]):
    def __init__(self, task: "asyncio.Task[_Result]") -> None:
        self.task = task
        self.waiting = 0


class Flights(Generic[_Key]):
    """One piece of work a key."""

    def __init__(self) -> None:
        self._flights: dict[_Key, _Flight[None]] = {}

    async def run(self, key: _Key, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do the work for a key, or wait for whoever is doing it."""
        while (flight := self._flights.get(key)) is not None:
            if await self._follow(flight):
                return
            # It has ended, but its own callback may not have had its turn yet.
            self._land(key, flight)
        flight = self._flights[key] = _Flight(asyncio.ensure_future(work()))
        flight.task.add_done_callback(lambda _: self._land(key, flight))
        await self._wait(flight)

    def _land(self, key: _Key, flight: _Flight[None]) -> None:
        """Nobody follows that any more; whoever took its place stays."""
        if self._flights.get(key) is flight:
            del self._flights[key]

    async def _follow(self, flight: _Flight[None]) -> bool:
        """Wait for another's work; say whether it succeeded."""
        try:
            await self._wait(flight)
        except asyncio.CancelledError:
            if not flight.task.cancelled():
                raise
            return False
        except Exception:  # noqa: BLE001 - the leader reports it; we try for ourselves
            return False
        return True

    async def _wait(self, flight: _Flight[None]) -> None:
        flight.waiting += 1
        try:
            await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if flight.waiting == 0 and not flight.task.done():
                flight.task.cancel()
                # The work cleans up after itself before anybody starts it anew.
                await asyncio.wait([flight.task])


async def uninterrupted(work: Awaitable[_Result]) -> _Result:
    """Finish the work even if the caller is cancelled, and only then pass that on."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
