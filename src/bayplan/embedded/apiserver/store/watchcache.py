"""The watch cache: the recent changes of one resource, which all its watchers read.

A watcher holds a position in the cache and reads on from there; it has no queue of its own.
Publishing therefore costs the same for any number of watchers. A watcher that reads too slowly
falls off the old end of the cache and gets 410 Expired; the others are not affected. Each change is
serialized once per event type.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from bayplan.embedded.apiserver.errors import StatusError, expired
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.store.entry import StoreEntry


class WatchCacheEvent:
    """One write: the entry after it and the entry before it."""

    __slots__ = ("_lines", "deleted", "entry", "previous", "revision")

    def __init__(self, entry: StoreEntry, previous: StoreEntry | None, deleted: bool) -> None:
        self.entry = entry
        self.previous = previous
        self.deleted = deleted
        self.revision = entry.revision
        self._lines: dict[str, bytes] = {}

    @property
    def type(self) -> str:
        """Return the event type for a watcher without a selector."""
        if self.deleted:
            return "DELETED"
        return "ADDED" if self.previous is None else "MODIFIED"

    def shown(self, event_type: str) -> StoreEntry:
        """Return the entry of an event; for one that left a selection, the entry before."""
        if event_type != "DELETED" or self.deleted or self.previous is None:
            return self.entry
        obj = self.previous.object()
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return StoreEntry(self.entry.key, self.revision, encode(obj), obj, self.previous.fields)

    def line(self, event_type: str) -> bytes:
        """Return the event as a line of a watch stream, serialized once."""
        line = self._lines.get(event_type)
        if line is None:
            line = self._lines[event_type] = event_line(event_type, self.shown(event_type).data)
        return line


def event_line(event_type: str, data: bytes) -> bytes:
    """Return one line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), data)


class WatchCache:
    """The last changes of one resource, in order, and the watchers that wait for the next."""

    def __init__(self, floor: int, capacity: int) -> None:
        self._changes: list[WatchCacheEvent] = []
        self._start = 0
        self._floor = floor
        self._capacity = capacity
        self._waiters: dict[asyncio.Future[None], None] = {}
        """In order: a set's order would differ from run to run."""

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._start + len(self._changes)

    def append(self, change: WatchCacheEvent) -> None:
        """Add a change and wake the waiting watchers; drop the oldest half when full."""
        self._changes.append(change)
        if len(self._changes) >= 2 * self._capacity:
            self._floor = self._changes[self._capacity - 1].revision
            del self._changes[: self._capacity]
            self._start += self._capacity
        self.wake()

    def wake(self) -> None:
        """Wake every waiting watcher."""
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def position_after(self, revision: int) -> int:
        """Return the position of the first change newer than a revision."""
        if revision < self._floor:
            raise _too_old(revision, self._floor)
        return self._start + bisect_right(self._changes, revision, key=lambda c: c.revision)

    def read(self, position: int) -> Sequence[WatchCacheEvent]:
        """Return the changes from a position on; 410 if they were dropped."""
        if position < self._start:
            raise _too_old(position, self._start)
        return self._changes[position - self._start :]

    async def wait(self, position: int, seconds: float) -> None:
        """Return once there is a change at a position, or after some seconds."""
        if position < self.end:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        await asyncio.wait((waiter,), timeout=seconds)
        self._waiters.pop(waiter, None)


def _too_old(requested: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {requested} ({oldest})")
