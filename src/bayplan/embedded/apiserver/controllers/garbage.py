"""Garbage collection, namespace deletion, and the TTL of events.

*Background*: the owner is deleted at once, its dependents follow. *Foreground*: the owner waits,
marked by a finalizer, until its blocking dependents are deleted. *Orphan*: the owner waits until
its dependents no longer have a reference to it.
"""

from __future__ import annotations

from datetime import timedelta

from bayplan.embedded.apiserver.controllers.queue import QueuedController, WorkQueue
from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call, DeletionOptions, UserInfo
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.deletion import FOREGROUND, ORPHAN
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.store import StaleWrite
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.kube.times import timestamp

_COLLECTOR = UserInfo(
    "system:serviceaccount:kube-system:generic-garbage-collector",
    ("system:masters", "system:authenticated"),
)


class GarbageCollector(QueuedController[ObjectKey]):
    """Follows every change and deletes dependents of deleted owners."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store
        self._queue = WorkQueue("garbage-collector", self._work)

    def start(self) -> None:
        """Look at all objects once, and then at every change."""
        for entry in self._store.everything():
            self._notice(entry, deleted=False)
        self._store.listeners.append(self._on_change)
        self._queue.start()

    def _on_change(self, change: WatchCacheEvent) -> None:
        self._notice(change.entry, change.deleted)
        if change.previous is not None:
            for uid in set(change.previous.owners) - set(change.entry.owners):
                self._notice_owner(uid)

    def _notice(self, entry: StoreEntry, deleted: bool) -> None:
        if deleted:
            for dependent in self._store.dependents(entry.uid):
                self._queue.add(dependent.key)
            for uid in entry.owners:
                self._notice_owner(uid)
        elif entry.owners or entry.is_terminating:
            self._queue.add(entry.key)

    def _notice_owner(self, uid: str) -> None:
        owner = self._store.by_uid(uid)
        if owner is not None and owner.is_terminating:
            self._queue.add(owner.key)

    async def _work(self, key: ObjectKey) -> bool:
        entry = self._store.get(key)
        if entry is None:
            return True
        try:
            if entry.is_terminating:
                return await self._finish_owner(entry)
            return await self._check_owners(entry)
        except StatusError as error:
            return error.code == 404

    async def _check_owners(self, entry: StoreEntry) -> bool:
        """Delete an object without remaining owners; otherwise remove dangling references."""
        owners = {uid: self._store.by_uid(uid) for uid in entry.owners}
        waiting = {
            uid
            for uid, owner in owners.items()
            if owner is not None and _waits_for_dependents(owner)
        }
        staying = {uid for uid, owner in owners.items() if owner is not None} - waiting
        if staying:
            await self._disown(entry, owners.keys() - staying)
        elif waiting:
            await self._delete(entry, "Foreground")
        elif owners:
            await self._delete(entry, "Background")
        return True

    async def _delete(self, entry: StoreEntry, propagation: str) -> None:
        finalizers = entry.object()["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            propagation = "Orphan"
        options = DeletionOptions(propagation=propagation, uid=entry.uid)
        await deletion.delete(self._backend, self._call(entry), options)

    async def _finish_owner(self, entry: StoreEntry) -> bool:
        finalizers = entry.object()["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            for dependent in self._store.dependents(entry.uid):
                await self._disown(dependent, {entry.uid})
            await self._drop_finalizer(entry, ORPHAN)
        elif FOREGROUND in finalizers:
            dependents = list(self._store.dependents(entry.uid))
            for dependent in dependents:
                self._queue.add(dependent.key)
            if not any(_blocks(dependent, entry.uid) for dependent in dependents):
                await self._drop_finalizer(entry, FOREGROUND)
        return True

    async def _disown(self, dependent: StoreEntry, uids: set[str]) -> None:
        def forget(obj: JsonObject) -> JsonObject:
            meta = obj["metadata"]
            left = [one for one in meta.get("ownerReferences") or () if one.get("uid") not in uids]
            meta["ownerReferences"] = left
            if not left:
                del meta["ownerReferences"]
            return obj

        if uids:
            await writes.change(self._backend, self._call(dependent), forget, trusted=True)

    async def _drop_finalizer(self, entry: StoreEntry, name: str) -> None:
        def drop(obj: JsonObject) -> JsonObject:
            meta = obj["metadata"]
            meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != name]
            return obj

        await writes.change(self._backend, self._call(entry), drop, trusted=True)

    def _call(self, entry: StoreEntry) -> Call:
        kind = self._backend.catalog.stored(entry.key.storage)
        if kind is None:
            raise StatusError(404, "NotFound", f"nothing serves {entry.key.storage}")
        return Call(_COLLECTOR, kind, entry.key.namespace, entry.key.name)


def _waits_for_dependents(owner: StoreEntry) -> bool:
    """Return whether an owner waits for its dependents to be deleted."""
    return owner.is_terminating and FOREGROUND in (
        owner.object()["metadata"].get("finalizers") or ()
    )


def _blocks(dependent: StoreEntry, uid: str) -> bool:
    owners = dependent.object()["metadata"].get("ownerReferences") or ()
    return any(one.get("uid") == uid and one.get("blockOwnerDeletion") for one in owners)


_NAMESPACE_CONTROLLER = UserInfo(
    "system:serviceaccount:kube-system:namespace-controller",
    ("system:masters", "system:authenticated"),
)


class NamespaceController(QueuedController[str]):
    """Deletes the content of terminating namespaces."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store
        self._queue = WorkQueue("namespace-controller", self._work)

    def start(self) -> None:
        """Look at all namespaces once, and then at every change."""
        for entry in self._store.list("namespaces"):
            if entry.is_terminating:
                self._queue.add(entry.key.name)
        self._store.listeners.append(self._on_change)
        self._queue.start()

    def _on_change(self, change: WatchCacheEvent) -> None:
        key = change.entry.key
        if key.storage == "namespaces":
            if change.entry.is_terminating and not change.deleted:
                self._queue.add(key.name)
        elif change.deleted and key.namespace:
            namespace = self._store.get(ObjectKey("namespaces", "", key.namespace))
            if namespace is not None and namespace.is_terminating:
                self._queue.add(key.namespace)

    async def _work(self, name: str) -> bool:
        entry = self._store.get(ObjectKey("namespaces", "", name))
        if entry is None or not entry.is_terminating:
            return True
        for content in list(self._store.in_namespace(name)):
            if not content.is_terminating:
                await self._delete(content)
        if not any(True for _ in self._store.in_namespace(name)):
            await self._finalize(entry)
        return True

    async def _delete(self, entry: StoreEntry) -> None:
        kind = self._backend.catalog.stored(entry.key.storage)
        if kind is None:
            return
        call = Call(_NAMESPACE_CONTROLLER, kind, entry.key.namespace, entry.key.name)
        try:
            await deletion.delete(self._backend, call, DeletionOptions(propagation="Background"))
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    async def _finalize(self, entry: StoreEntry) -> None:
        kind = self._backend.catalog.stored("namespaces")
        if kind is None:
            return

        def release(namespace: JsonObject) -> JsonObject:
            namespace["spec"] = {}
            return namespace

        call = Call(_NAMESPACE_CONTROLLER, kind, name=entry.key.name, subresource="finalize")
        try:
            await writes.change(self._backend, call, release, trusted=True)
        except StatusError as error:
            if error.code != 404:
                raise


EVENTS = "events"
TTL = timedelta(hours=1)
_AT_ONCE = 200
_PAUSE = 10.0
"""Seconds until events are looked at again, after none had expired."""


class EventTtlController:
    """Deletes old events."""

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
        """Return once all changes so far are processed."""
        await self._queue.settled()

    async def stop(self) -> None:
        """Stop."""
        await self._queue.stop()

    def _on_change(self, change: WatchCacheEvent) -> None:
        if change.entry.key.storage != EVENTS or change.deleted:
            return
        if self._backend.clock.monotonic() >= self._due:
            self._queue.add(EVENTS)

    async def _work(self, _: str) -> bool:
        """Delete expired events, oldest first."""
        clock = self._backend.clock
        oldest = timestamp(clock.now() - TTL)
        for entry in self._store.oldest(EVENTS, _AT_ONCE):
            if entry.object()["metadata"].get("creationTimestamp", "") >= oldest:
                self._due = clock.monotonic() + _PAUSE
                break
            self._remove(entry)
        return True

    def _remove(self, entry: StoreEntry) -> None:
        try:
            self._store.remove(entry.key, entry.object(), entry)
        except StaleWrite:
            return
