"""Events are news, not records: those older than an hour go when newer ones come."""

from __future__ import annotations

from datetime import timedelta

from bayplan.embedded.apiserver.controllers.queue import WorkQueue
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import Entry
from bayplan.embedded.apiserver.store.store import StaleWrite
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.kube.times import timestamp

EVENTS = "events"
TTL = timedelta(hours=1)
_AT_ONCE = 200
_PAUSE = 10.0
"""Seconds until events are looked at again, after none was too old."""


class EventReaper:
    """Removes old events."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store
        self._queue: WorkQueue[str] = WorkQueue("event-reaper", self._work)
        self._due = float("-inf")
        """Before then, on the clock, nothing is too old."""

    def start(self) -> None:
        """Look whenever an event is written."""
        self._store.listeners.append(self._on_change)
        self._queue.start()

    async def settled(self) -> None:
        """Return once everything that follows from the changes so far has been done."""
        await self._queue.settled()

    async def stop(self) -> None:
        """Stop looking."""
        await self._queue.stop()

    def _on_change(self, change: Change) -> None:
        if change.entry.key.storage != EVENTS or change.deleted:
            return
        if self._backend.clock.monotonic() >= self._due:
            self._queue.add(EVENTS)

    async def _work(self, _: str) -> bool:
        """Remove what is too old, oldest first, and stop at the first that is not."""
        clock = self._backend.clock
        oldest = timestamp(clock.now() - TTL)
        for entry in self._store.oldest(EVENTS, _AT_ONCE):
            if entry.object()["metadata"].get("creationTimestamp", "") >= oldest:
                self._due = clock.monotonic() + _PAUSE
                break
            self._remove(entry)
        return True

    def _remove(self, entry: Entry) -> None:
        try:
            self._store.remove(entry.key, entry.object(), entry)
        except StaleWrite:
            return
