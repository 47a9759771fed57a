"""The store: reads come from memory; a write is on file before a client sees it.

There is one writer, the event loop. `put` and `remove` check the expected revision, append to the
file, then update the index and notify the watchers, all without yielding, so resource versions grow
in the order in which changes become visible. The file's commit is scheduled at the first write of
an event loop iteration, and made before any response is sent: no client ever sees a state that a
crash could undo.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from bayplan.embedded.apiserver.errors import bad_request, too_large
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode, excess
from bayplan.embedded.apiserver.store.database import Database, HistoryRow
from bayplan.embedded.apiserver.store.entry import FieldReader, ListSnapshots, ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.watchcache import WatchCache, WatchCacheEvent

log = logging.getLogger(__name__)

MAX_BYTES = 3 * 1024 * 1024
"""The largest size of a stored object, in bytes."""
WATCH_CACHE_CAPACITY = 4096
"""Number of changes that a resource's watch cache holds at least."""
HISTORY_KEPT = 10_000
"""Revisions that compaction keeps for watches to resume from; it runs at 1.5 times as many."""


class StaleWrite(Exception):  # noqa: N818 - an outcome that callers handle
    """The object is no longer at the revision that the write expects."""


class Bucket:
    """All objects of one storage name."""

    def __init__(self, floor: int, capacity: int) -> None:
        self.entries: dict[tuple[str, str], StoreEntry] = {}
        self.by_namespace: dict[str, dict[str, StoreEntry]] = defaultdict(dict)
        self.watch_cache = WatchCache(floor, capacity)
        self._sorted: dict[str, Sequence[StoreEntry]] = {}

    def listed(self, namespace: str) -> Sequence[StoreEntry]:
        """Return the objects of a namespace (or all), sorted; do not change the result."""
        found = self._sorted.get(namespace)
        if found is None:
            entries = self.by_namespace.get(namespace, {}) if namespace else self.entries
            found = [entry for _, entry in sorted(entries.items())]
            self._sorted[namespace] = found
        return found

    def apply(self, change: WatchCacheEvent) -> None:
        """Make a change visible."""
        key = change.entry.key
        if change.deleted:
            self.entries.pop((key.namespace, key.name), None)
            self.by_namespace[key.namespace].pop(key.name, None)
        else:
            self.entries[key.namespace, key.name] = change.entry
            self.by_namespace[key.namespace][key.name] = change.entry
        self._sorted.pop("", None)
        self._sorted.pop(key.namespace, None)
        self.watch_cache.append(change)


class ApiObjectStore:
    """All objects by key, and their recent changes."""

    def __init__(
        self,
        database: Database,
        fields: FieldReader,
        watch_cache_capacity: int = WATCH_CACHE_CAPACITY,
        history: int = HISTORY_KEPT,
    ) -> None:
        self._history = history
        self.revision = database.compacted()
        self.snapshots = ListSnapshots()
        self.closing = False
        self._database = database
        self._fields = fields
        self._capacity = watch_cache_capacity
        self._compacted = self.revision
        self._buckets: dict[str, Bucket] = {}
        self._by_uid: dict[str, ObjectKey] = {}
        self.listeners: list[Callable[[WatchCacheEvent], None]] = []
        """Called synchronously for every change; they must not write. A failing one is logged."""
        self._owned: dict[str, set[ObjectKey]] = defaultdict(set)
        self._superseded: deque[tuple[int, int]] = deque()
        """Superseded rows, with the revision that superseded them."""
        for row in database.rows():
            self._load(row)

    def get(self, key: ObjectKey) -> StoreEntry | None:
        """Return the current entry of an object, or None."""
        return self._bucket(key.storage).entries.get((key.namespace, key.name))

    def list(self, storage: str, namespace: str = "") -> Sequence[StoreEntry]:
        """Return the objects of a namespace (or all), sorted."""
        return self._bucket(storage).listed(namespace)

    def watch_cache(self, storage: str) -> WatchCache:
        """Return the recent changes of a resource."""
        return self._bucket(storage).watch_cache

    def dependents(self, uid: str) -> Iterator[StoreEntry]:
        """Return the objects that have an owner reference to a UID, sorted."""
        for key in sorted(self._owned.get(uid, ())):
            entry = self.get(key)
            if entry is not None:
                yield entry

    def by_uid(self, uid: str) -> StoreEntry | None:
        """Return the object with a UID, or None."""
        key = self._by_uid.get(uid)
        return self.get(key) if key is not None else None

    def everything(self) -> Iterator[StoreEntry]:
        """Return all objects."""
        for bucket in list(self._buckets.values()):
            yield from list(bucket.entries.values())

    def oldest(self, storage: str, count: int) -> Sequence[StoreEntry]:
        """Return the objects of a kind that were created first."""
        return tuple(islice(self._bucket(storage).entries.values(), count))

    def reindex(self, storage: str) -> None:
        """Read the selectable fields of a kind's objects again, after a CRD changed them."""
        for entry in self._bucket(storage).entries.values():
            entry.fields = self._fields(storage, entry.object())

    def counts(self) -> dict[str, int]:
        """Return the number of objects of each kind."""
        return {storage: len(bucket.entries) for storage, bucket in self._buckets.items()}

    def in_namespace(self, namespace: str) -> Iterator[StoreEntry]:
        """Return all objects of a namespace, of any kind."""
        for bucket in list(self._buckets.values()):
            yield from list(bucket.by_namespace.get(namespace, {}).values())

    def put(self, key: ObjectKey, obj: JsonObject, expected: StoreEntry | None) -> StoreEntry:
        """Write an object that is now at `expected` (None: absent); sets its resource version."""
        previous = self._expect(key, expected)
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        data = encode(obj)
        if len(data) > MAX_BYTES:
            raise too_large(MAX_BYTES)
        if problem := excess(obj, data):
            raise bad_request(problem)
        entry = StoreEntry(key, revision, data, obj, self._fields(key.storage, obj))
        self._commit(WatchCacheEvent(entry, previous, deleted=False))
        return entry

    def remove(self, key: ObjectKey, obj: JsonObject, expected: StoreEntry) -> StoreEntry:
        """Delete an object that is now at `expected`; watchers see `obj` as its last state."""
        previous = self._expect(key, expected)
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        entry = StoreEntry(key, revision, encode(obj), obj, self._fields(key.storage, obj))
        self._commit(WatchCacheEvent(entry, previous, deleted=True))
        return entry

    def release(self) -> None:
        """End every watch, before the server stops."""
        self.closing = True
        for bucket in self._buckets.values():
            bucket.watch_cache.wake()

    def records(self, topic: str) -> dict[str, bytes]:
        """Return the records that a component of this process keeps beside the objects, by name."""
        return self._database.list_meta(f"note/{topic}/")

    def save_records(self, topic: str, records: Mapping[str, bytes | None]) -> None:
        """Save records beside the objects in one transaction; None deletes a record."""
        self._database.put_many_meta(
            {f"note/{topic}/{name}": data for name, data in records.items()}
        )

    def close(self) -> None:
        """End every watch and close the file."""
        self.release()
        self._database.close()

    def _expect(self, key: ObjectKey, expected: StoreEntry | None) -> StoreEntry | None:
        current = self.get(key)
        if current is not expected:
            raise StaleWrite(key)
        return current

    def _commit(self, change: WatchCacheEvent) -> None:
        entry = change.entry
        self._database.append(HistoryRow(entry.revision, *entry.key, change.deleted, entry.data))
        self._apply(change)
        self._notify(change)
        if entry.revision - self._compacted >= self._history * 3 // 2:
            self._compact(entry.revision - self._history)

    def _notify(self, change: WatchCacheEvent) -> None:
        for listener in self.listeners:
            try:
                listener(change)
            except Exception:
                log.exception("a listener of the store failed for %s", change.entry.key)

    def _apply(self, change: WatchCacheEvent) -> None:
        self.revision = change.revision
        if change.previous is not None:
            self._superseded.append((change.previous.revision, change.revision))
            self._disown(change.previous)
        if change.deleted:
            self._superseded.append((change.revision, change.revision))
            self._by_uid.pop(change.entry.uid, None)
        else:
            self._by_uid[change.entry.uid] = change.entry.key
            for uid in change.entry.owners:
                self._owned[uid].add(change.entry.key)
        self._bucket(change.entry.key.storage).apply(change)

    def _disown(self, entry: StoreEntry) -> None:
        for uid in entry.owners:
            keys = self._owned[uid]
            keys.discard(entry.key)
            if not keys:
                del self._owned[uid]

    def _bucket(self, storage: str) -> Bucket:
        bucket = self._buckets.get(storage)
        if bucket is None:
            bucket = self._buckets[storage] = Bucket(self._compacted, self._capacity)
        return bucket

    def _load(self, row: HistoryRow) -> None:
        key = ObjectKey(row.storage, row.namespace, row.name)
        obj = decode(row.data)
        entry = StoreEntry(key, row.revision, row.data, obj, self._fields(key.storage, obj))
        self._apply(WatchCacheEvent(entry, self.get(key), bool(row.deleted)))

    def _compact(self, upto: int) -> None:
        """Delete rows that were superseded up to a revision; later ones stay for watches."""
        gone: list[int] = []
        while self._superseded and self._superseded[0][1] <= upto:
            gone.append(self._superseded.popleft()[0])
        self._database.forget(gone, upto)
        self._compacted = upto
