"""Numbered changes, kept for a while and sent to all listeners.

A client that reconnects with the number of the last change it has seen gets the changes since then,
as long as they are still kept; otherwise it has to fetch the whole state again. The same happens to
a listener that is too slow: the bytes queued for it are bounded, and then dropped.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

MAX_CHANGES = 4000
MAX_BYTES = 32 << 20
MAX_QUEUED = 8 << 20
"""Maximum number of bytes queued for one listener."""


class ChangeLogEntry(NamedTuple):
    """A numbered change in the format of the stream."""

    seq: int
    data: bytes


class ChangeListener:
    """A listener to changes, read by one task."""

    def __init__(self, forget: Callable[[ChangeListener], None], most: int = MAX_QUEUED) -> None:
        self._forget = forget
        self._queued: deque[ChangeLogEntry] = deque()
        self._bytes = 0
        self._most = most
        self._changed = asyncio.Event()
        self.is_too_slow = False

    def put(self, entry: ChangeLogEntry) -> None:
        """Queue a change; if there are too many bytes, drop all."""
        if self.is_too_slow:
            return
        self._bytes += len(entry.data)
        if self._bytes > self._most:
            self.is_too_slow = True
            self._queued.clear()
        else:
            self._queued.append(entry)
        self._changed.set()

    async def next(self) -> ChangeLogEntry | None:
        """Return the next change as soon as there is one; None if the listener was too slow."""
        while not self._queued:
            if self.is_too_slow:
                return None
            self._changed.clear()
            await self._changed.wait()
        entry = self._queued.popleft()
        self._bytes -= len(entry.data)
        return entry

    def close(self) -> None:
        """Stop listening."""
        self._forget(self)


class PageChangeLog:
    """The last changes, and their listeners."""

    def __init__(
        self, most: int = MAX_CHANGES, most_bytes: int = MAX_BYTES, *, start: int = 0
    ) -> None:
        self._entries: deque[ChangeLogEntry] = deque()
        self._bytes = 0
        self._most, self._most_bytes = most, most_bytes
        self._listeners: set[ChangeListener] = set()
        self.seq = start
        """The number of the last change; it starts from another number in every server."""

    @property
    def listeners(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    def add(self, data: bytes) -> None:
        """Number a change and send it to all listeners."""
        self.seq += 1
        entry = ChangeLogEntry(self.seq, data)
        self._entries.append(entry)
        self._bytes += len(data)
        while len(self._entries) > self._most or self._bytes > self._most_bytes:
            self._bytes -= len(self._entries.popleft().data)
        for listener in tuple(self._listeners):
            listener.put(entry)

    def has_after(self, seq: int) -> bool:
        """Return whether all changes after a number are still kept."""
        return seq == self.seq or (
            bool(self._entries) and self._entries[0].seq <= seq + 1 <= self.seq
        )

    def listen(self, after: int, most: int = MAX_QUEUED) -> ChangeListener | None:
        """Return a listener for the changes after a number; None if they are no longer kept."""
        if not self.has_after(after):
            return None
        listener = ChangeListener(self._listeners.discard, most)
        for entry in self._entries:
            if entry.seq > after:
                listener.put(entry)
        self._listeners.add(listener)
        return listener
