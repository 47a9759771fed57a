"""The recent changes of one resource, which all its watchers read.

A watcher holds a position in the watch cache and reads on from there; it has no queue of its own.
Publishing therefore costs the same however many watch, and one that reads too slowly falls off the
old end of the watch cache and is told so (410), without anybody else noticing. Each change is
serialized once per event type, whoever reads it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence

from bayplan.embedded.apiserver.errors import ApiError, expired
from bayplan.embedded.apiserver.jsontypes import encode
from bayplan.embedded.apiserver.store.entry import Entry


class Change:
    """One write: the entry after it and the entry before it."""

    __slots__ = ("_lines", "deleted", "entry", "previous", "revision")

    def __init__(self, entry: Entry, previous: Entry | None, deleted: bool) -> None:
        self.entry = entry
        self.previous = previous
        self.deleted = deleted
        self.revision = entry.revision
        self._lines: dict[str, bytes] = {}

    @property
    def type(self) -> str:
        """The event type for a watcher that selects everything."""
        if self.deleted:
            return "DELETED"
        return "ADDED" if self.previous is None else "MODIFIED"

    def shown(self, event_type: str) -> Entry:
        """The entry that an event shows: one that left a selection shows what it was before."""
        if event_type != "DELETED" or self.deleted or self.previous is None:
            return self.entry
        obj = self.previous.object()
        obj["metadata"]["resourceVersion"] = str(self.revision)
        return Entry(self.entry.key, self.revision, encode(obj), obj, self.previous.fields)

    def line(self, event_type: str) -> bytes:
        """The event as a line of a watch stream, serialized once."""
        line = self._lines.get(event_type)
        if line is None:
            line = self._lines[event_type] = event_line(event_type, self.shown(event_type).data)
        return line


def event_line(event_type: str, data: bytes) -> bytes:
    """One line of a watch stream."""
    return b'{"type":"%b","object":%b}\n' % (event_type.encode(), data)


class WatchCache:
    """The last changes of one resource, in order, and those who wait for the next."""

    def __init__(self, floor: int, capacity: int) -> None:
        self._changes: list[Change] = []
        self._start = 0
        self._floor = floor
        self._capacity = capacity
        self._waiters: dict[asyncio.Future[None], None] = {}
        """In order: a set's order would differ from run to run."""

    @property
    def end(self) -> int:
        """The position after the newest change."""
        return self._start + len(self._changes)

    def append(self, change: Change) -> None:
        """Add a change and wake whoever waits; the oldest half goes when it is full."""
        self._changes.append(change)
        if len(self._changes) >= 2 * self._capacity:
            self._floor = self._changes[self._capacity - 1].revision
            del self._changes[: self._capacity]
            self._start += self._capacity
        self.wake()

    def wake(self) -> None:
        """Let every waiting watcher look again."""
        waiters, self._waiters = self._waiters, {}
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def position_after(self, revision: int) -> int:
        """Where to read on for everything newer than a revision."""
        if revision < self._floor:
            raise _too_old(revision, self._floor)
        return self._start + bisect_right(self._changes, revision, key=lambda c: c.revision)

    def read(self, position: int) -> Sequence[Change]:
        """What happened from a position on; 410 if the reader fell behind too far."""
        if position < self._start:
            raise _too_old(position, self._start)
        return self._changes[position - self._start :]

    async def wait(self, position: int, seconds: float) -> None:
        """Return once there is something at a position, or after some seconds."""
        if position < self.end:
            return
        waiter = asyncio.get_running_loop().create_future()
        self._waiters[waiter] = None
        await asyncio.wait((waiter,), timeout=seconds)
        self._waiters.pop(waiter, None)


def _too_old(asked: int, oldest: int) -> ApiError:
    return expired(f"too old resource version: {asked} ({oldest})")
