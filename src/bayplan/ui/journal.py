"""Numbered changes, kept for a while and handed to everybody who listens.

Whoever comes back after a break and names the last change it has seen is told what came since, as
long as that is still here; else it has to fetch the whole state again. The same happens to a
listener that is too slow: what waits for it is bounded, and then thrown away.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

MOST_CHANGES = 4000
MOST_BYTES = 32 << 20
MOST_WAITING = 8 << 20
"""Bytes that may wait for one listener."""


class Entry(NamedTuple):
    """A change, as it is sent."""

    seq: int
    data: bytes


class Listener:
    """One who listens; to be read by one task."""

    def __init__(self, forget: Callable[[Listener], None], most: int = MOST_WAITING) -> None:
        self._forget = forget
        self._waiting: deque[Entry] = deque()
        self._bytes = 0
        self._most = most
        self._news = asyncio.Event()
        self.too_slow = False

    def put(self, entry: Entry) -> None:
        """One more change; if it is too much, none of them any more."""
        if self.too_slow:
            return
        self._bytes += len(entry.data)
        if self._bytes > self._most:
            self.too_slow = True
            self._waiting.clear()
        else:
            self._waiting.append(entry)
        self._news.set()

    async def next(self) -> Entry | None:
        """The next change, as soon as there is one; None if too many have been waiting."""
        while not self._waiting:
            if self.too_slow:
                return None
            self._news.clear()
            await self._news.wait()
        entry = self._waiting.popleft()
        self._bytes -= len(entry.data)
        return entry

    def close(self) -> None:
        """Listen no more."""
        self._forget(self)


class Journal:
    """The last changes, and those who listen."""

    def __init__(
        self, most: int = MOST_CHANGES, most_bytes: int = MOST_BYTES, *, start: int = 0
    ) -> None:
        self._entries: deque[Entry] = deque()
        self._bytes = 0
        self._most, self._most_bytes = most, most_bytes
        self._listeners: set[Listener] = set()
        self.seq = start
        """The number of the last change. Servers that start from different ones are told apart."""

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def add(self, data: bytes) -> None:
        """Number a change, and hand it on."""
        self.seq += 1
        entry = Entry(self.seq, data)
        self._entries.append(entry)
        self._bytes += len(data)
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            self._bytes -= len(self._entries.popleft().data)
        for listener in tuple(self._listeners):
            listener.put(entry)

    def has_after(self, seq: int) -> bool:
        """Whether everything after a change is still known."""
        return seq == self.seq or (
            bool(self._entries) and self._entries[0].seq <= seq + 1 <= self.seq
        )

    def listen(self, after: int, most: int = MOST_WAITING) -> Listener | None:
        """Listen to what comes after a change; None if that is not known any more."""
        if not self.has_after(after):
            return None
        listener = Listener(self._listeners.discard, most)
        for entry in self._entries:
            if entry.seq > after:
                listener.put(entry)
        self._listeners.add(listener)
        return listener
