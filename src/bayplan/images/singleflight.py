"""Calls that several callers share, and work that must not be interrupted.

`SingleFlight` runs at most one call per key: other callers of the same key wait for it. If the
first caller's call fails, a waiting caller runs its own, because the failure may be specific (other
credentials, a cancelled call). A call that no caller waits for any more is cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Generic, TypeVar

_Result = TypeVar("_Result")
_Key = TypeVar("_Key", bound=Hashable)


class _Call(Generic[_Result]):
    def __init__(self, task: "asyncio.Task[_Result]") -> None:
        self.task = task
        self.waiting = 0


class SingleFlight(Generic[_Key]):
    """Runs at most one call per key."""

    def __init__(self) -> None:
        self._calls: dict[_Key, _Call[None]] = {}

    async def run(self, key: _Key, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Do the work for a key, or wait for the call that is doing it."""
        while (call := self._calls.get(key)) is not None:
            if await self._follow(call):
                return
            # It has ended, but its callback may not have run yet.
            self._remove(key, call)
        call = self._calls[key] = _Call(asyncio.ensure_future(work()))
        call.task.add_done_callback(lambda _: self._remove(key, call))
        await self._wait(call)

    def _remove(self, key: _Key, call: _Call[None]) -> None:
        """Remove a call that has ended, unless another has replaced it."""
        if self._calls.get(key) is call:
            del self._calls[key]

    async def _follow(self, call: _Call[None]) -> bool:
        """Wait for another caller's call; return whether it succeeded."""
        try:
            await self._wait(call)
        except asyncio.CancelledError:
            if not call.task.cancelled():
                raise
            return False
        except Exception:  # noqa: BLE001 - the first caller reports it; this one retries
            return False
        return True

    async def _wait(self, call: _Call[None]) -> None:
        call.waiting += 1
        try:
            await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if call.waiting == 0 and not call.task.done():
                call.task.cancel()
                # The work cleans up before it is started again.
                await asyncio.wait([call.task])


async def uninterrupted(work: Awaitable[_Result]) -> _Result:
    """Finish the work even if the caller is cancelled, and only then raise CancelledError."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
