"""A work queue: keys of changed objects, each processed by one task at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

K = TypeVar("K")
_REQUEUE_AFTER = 0.05
_YIELD_AFTER = 8
"""Number of keys after which the event loop runs other tasks."""


class WorkQueue(Generic[K]):
    """Calls a function for each added key, one after the other."""

    def __init__(self, name: str, work: Callable[[K], Awaitable[bool]]) -> None:
        self._name = name
        self._work = work
        self._waiting: deque[K] = deque()
        self._known: set[K] = set()
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._worked = 0

    def add(self, key: K) -> None:
        """Enqueue a key."""
        if key not in self._known:
            self._known.add(key)
            self._waiting.append(key)
            self._idle.clear()
            self._news.set()

    def start(self) -> None:
        """Start processing."""
        self._task = asyncio.create_task(self._run(), name=self._name)

    async def settled(self) -> None:
        """Return once the queue is empty."""
        await self._idle.wait()

    async def stop(self) -> None:
        """Stop processing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            while self._waiting:
                await self._one(self._waiting.popleft())
            self._news.clear()
            self._idle.set()

    async def _one(self, key: K) -> None:
        """Process one key; requeue it with a delay if it fails or is not done."""
        self._known.discard(key)
        try:
            done = await self._work(key)
        except Exception:
            log.exception("%s: %s failed", self._name, key)
            done = False
        if not done:
            asyncio.get_running_loop().call_later(_REQUEUE_AFTER, self.add, key)
        self._worked += 1
        if self._worked % _YIELD_AFTER == 0:
            await asyncio.sleep(0)


class QueuedController(Generic[K]):
    """A controller with a work queue."""

    _queue: WorkQueue[K]

    async def settled(self) -> None:
        """Return once all changes so far are processed."""
        await self._queue.settled()

    async def stop(self) -> None:
        """Stop."""
        await self._queue.stop()
