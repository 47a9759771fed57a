"""The store: reads come from memory, a write is on file before anybody sees it.

There is one writer, the event loop. `put` and `remove` check the expected revision, append to the
file and then change the index and tell the watchers, all without yielding, so resource versions
grow in the order in which changes become visible. The file's commit is scheduled at the first
write of a turn of the event loop, and made before any answer that could tell of it leaves: no
client ever sees a state that a crash could take back.
"""

from __future__ import annotations

import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from bayplan.embedded.apiserver.errors import bad_request, too_large
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode, excess
from bayplan.embedded.apiserver.store.database import Database, Row
from bayplan.embedded.apiserver.store.entry import Entry, FieldReader, Key, Snapshots
from bayplan.embedded.apiserver.store.watchcache import Change, WatchCache

log = logging.getLogger(__name__)

MOST_BYTES = 3 * 1024 * 1024
"""How large an object may become, change by change."""
WATCH_CACHE_CAPACITY = 4096
"""Changes that a resource's watch cache surely holds."""
HISTORY_KEPT = 10_000
"""Revisions that compaction leaves for watches to resume from; it runs at half as many more."""


class StaleWrite(Exception):  # noqa: N818 - an outcome that callers handle
    """The object is no longer at the revision that the write was made for."""


class Bucket:
    """All objects of one storage name."""

    def __init__(self, floor: int, capacity: int) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}
        self.by_namespace: dict[str, dict[str, Entry]] = defaultdict(dict)
        self.watch_cache = WatchCache(floor, capacity)
        self._sorted: dict[str, Sequence[Entry]] = {}

    def listed(self, namespace: str) -> Sequence[Entry]:
        """The objects of a namespace (or all) in order; do not change the result."""
        found = self._sorted.get(namespace)
        if found is None:
            entries = self.by_namespace.get(namespace, {}) if namespace else self.entries
            found = [entry for _, entry in sorted(entries.items())]
            self._sorted[namespace] = found
        return found

    def apply(self, change: Change) -> None:
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


class Store:
    """Every object, by where it stands; and what happened to it lately."""

    def __init__(
        self,
        database: Database,
        fields: FieldReader,
        watch_cache_capacity: int = WATCH_CACHE_CAPACITY,
        history: int = HISTORY_KEPT,
    ) -> None:
        self._history = history
        self.revision = database.compacted()
        self.snapshots = Snapshots()
        self.closing = False
        self._database = database
        self._fields = fields
        self._capacity = watch_cache_capacity
        self._compacted = self.revision
        self._buckets: dict[str, Bucket] = {}
        self._by_uid: dict[str, Key] = {}
        self.listeners: list[Callable[[Change], None]] = []
        """Told of every change, at once; they must not write. One that fails stops nobody else."""
        self._owned: dict[str, set[Key]] = defaultdict(set)
        self._superseded: deque[tuple[int, int]] = deque()
        """Rows that are no longer anybody's state, and the revision that made them so."""
        for row in database.rows():
            self._load(row)

    def get(self, key: Key) -> Entry | None:
        """An object as it is now."""
        return self._bucket(key.storage).entries.get((key.namespace, key.name))

    def list(self, storage: str, namespace: str = "") -> Sequence[Entry]:
        """The objects of a namespace (or all), in order."""
        return self._bucket(storage).listed(namespace)

    def watch_cache(self, storage: str) -> WatchCache:
        """The recent changes of a resource."""
        return self._bucket(storage).watch_cache

    def dependents(self, uid: str) -> Iterator[Entry]:
        """The objects that name an owner, in order."""
        for key in sorted(self._owned.get(uid, ())):
            entry = self.get(key)
            if entry is not None:
                yield entry

    def by_uid(self, uid: str) -> Entry | None:
        """The object of a UID."""
        key = self._by_uid.get(uid)
        return self.get(key) if key is not None else None

    def everything(self) -> Iterator[Entry]:
        """Every object."""
        for bucket in list(self._buckets.values()):
            yield from list(bucket.entries.values())

    def oldest(self, storage: str, count: int) -> Sequence[Entry]:
        """The objects of a kind that were made first."""
        return tuple(islice(self._bucket(storage).entries.values(), count))

    def reindex(self, storage: str) -> None:
        """Read the selectable fields of a kind's objects anew: what can be selected by changed."""
        for entry in self._bucket(storage).entries.values():
            entry.fields = self._fields(storage, entry.object())

    def counts(self) -> dict[str, int]:
        """How many objects there are of each kind."""
        return {storage: len(bucket.entries) for storage, bucket in self._buckets.items()}

    def in_namespace(self, namespace: str) -> Iterator[Entry]:
        """Every object of a namespace, of whatever kind."""
        for bucket in list(self._buckets.values()):
            yield from list(bucket.by_namespace.get(namespace, {}).values())

    def put(self, key: Key, obj: JsonObject, expected: Entry | None) -> Entry:
        """Write an object that is now at `expected` (None: absent); sets its resource version."""
        previous = self._expect(key, expected)
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        data = encode(obj)
        if len(data) > MOST_BYTES:
            raise too_large(MOST_BYTES)
        if problem := excess(obj, data):
            raise bad_request(problem)
        entry = Entry(key, revision, data, obj, self._fields(key.storage, obj))
        self._commit(Change(entry, previous, deleted=False))
        return entry

    def remove(self, key: Key, obj: JsonObject, expected: Entry) -> Entry:
        """Delete an object that is now at `expected`; `obj` is the last state that watchers see."""
        previous = self._expect(key, expected)
        revision = self.revision + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        entry = Entry(key, revision, encode(obj), obj, self._fields(key.storage, obj))
        self._commit(Change(entry, previous, deleted=True))
        return entry

    def release(self) -> None:
        """End every watch: the server is about to stop."""
        self.closing = True
        for bucket in self._buckets.values():
            bucket.watch_cache.wake()

    def notes(self, topic: str) -> dict[str, bytes]:
        """What somebody in this process keeps beside the objects, by name, in order."""
        return self._database.kept(f"note/{topic}/")

    def keep_notes(self, topic: str, notes: Mapping[str, bytes | None]) -> None:
        """Keep something beside the objects, all of it or nothing; None forgets a note."""
        self._database.keep({f"note/{topic}/{name}": data for name, data in notes.items()})

    def close(self) -> None:
        """Release every watcher and the file."""
        self.release()
        self._database.close()

    def _expect(self, key: Key, expected: Entry | None) -> Entry | None:
        current = self.get(key)
        if current is not expected:
            raise StaleWrite(key)
        return current

    def _commit(self, change: Change) -> None:
        entry = change.entry
        self._database.append(Row(entry.revision, *entry.key, change.deleted, entry.data))
        self._apply(change)
        self._tell(change)
        if entry.revision - self._compacted >= self._history * 3 // 2:
            self._compact(entry.revision - self._history)

    def _tell(self, change: Change) -> None:
        for listener in self.listeners:
            try:
                listener(change)
            except Exception:
                log.exception("a listener failed at %s", change.entry.key)

    def _apply(self, change: Change) -> None:
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

    def _disown(self, entry: Entry) -> None:
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

    def _load(self, row: Row) -> None:
        key = Key(row.storage, row.namespace, row.name)
        obj = decode(row.data)
        entry = Entry(key, row.revision, row.data, obj, self._fields(key.storage, obj))
        self._apply(Change(entry, self.get(key), bool(row.deleted)))

    def _compact(self, upto: int) -> None:
        """Forget rows superseded by a revision; what a later change replaced stays, for watches."""
        gone: list[int] = []
        while self._superseded and self._superseded[0][1] <= upto:
            gone.append(self._superseded.popleft()[0])
        self._database.forget(gone, upto)
        self._compacted = upto
