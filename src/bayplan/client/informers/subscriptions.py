"""Listening to an informer without being able to fall behind it unbounded.

A subscriber first hears of everything there is, then of every change, in order. Between the
informer and each subscriber lies a short queue; when it is full the informer waits, stops reading
from the server, and the network's own flow control does the rest. Nothing is dropped, and memory
stays bounded.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import Generic, Self

from bayplan.client.informers.changes import Change
from bayplan.client.resources import T


class Subscription(Generic[T]):
    """The changes, from now on; to be used as a context manager and iterated over."""

    def __init__(
        self, there: Iterable[T], bound: int, forget: Callable[[Subscription[T]], None]
    ) -> None:
        self._there = deque(there)
        self._changes: asyncio.Queue[Change[T]] = asyncio.Queue(bound)
        self._forget = forget
        self._closed = False

    async def put(self, change: Change[T]) -> None:
        """Hand a change over, waiting for room."""
        if not self._closed:
            await self._changes.put(change)

    @property
    def waiting(self) -> int:
        """How many changes lie in the queue."""
        return self._changes.qsize()

    def close(self) -> None:
        """Listen no more; an informer that waits for room goes on."""
        self._closed = True
        self._forget(self)
        while not self._changes.empty():
            self._changes.get_nowait()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change[T]:
        if self._there:
            return Change("added", new=self._there.popleft())
        if self._closed:
            raise StopAsyncIteration
        return await self._changes.get()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
