"""The garbage collector: objects whose owners are gone go too, unless they were orphaned.

*Background*: the owner goes at once, its dependents follow. *Foreground*: the owner waits, marked
by a finalizer, until the dependents that block it are gone. *Orphan*: the owner waits until its
dependents no longer name it.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.controllers.queue import Queued, WorkQueue
from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call, DeleteOptions, User
from bayplan.embedded.apiserver.rest import deleting, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.deleting import FOREGROUND, ORPHAN
from bayplan.embedded.apiserver.store.entry import Entry, Key
from bayplan.embedded.apiserver.store.watchcache import Change

_USER = User(
    "system:serviceaccount:kube-system:generic-garbage-collector",
    ("system:masters", "system:authenticated"),
)


class GarbageCollector(Queued[Key]):
    """Follows every change and keeps ownership true."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store
        self._queue = WorkQueue("garbage-collector", self._work)

    def start(self) -> None:
        """Look at everything once, and then at every change."""
        for entry in self._store.everything():
            self._notice(entry, deleted=False)
        self._store.listeners.append(self._on_change)
        self._queue.start()

    def _on_change(self, change: Change) -> None:
        self._notice(change.entry, change.deleted)
        if change.previous is not None:
            for uid in set(change.previous.owners) - set(change.entry.owners):
                self._notice_owner(uid)

    def _notice(self, entry: Entry, deleted: bool) -> None:
        if deleted:
            for dependent in self._store.dependents(entry.uid):
                self._queue.add(dependent.key)
            for uid in entry.owners:
                self._notice_owner(uid)
        elif entry.owners or entry.deleting:
            self._queue.add(entry.key)

    def _notice_owner(self, uid: str) -> None:
        owner = self._store.by_uid(uid)
        if owner is not None and owner.deleting:
            self._queue.add(owner.key)

    async def _work(self, key: Key) -> bool:
        entry = self._store.get(key)
        if entry is None:
            return True
        try:
            if entry.deleting:
                return await self._finish_owner(entry)
            return await self._check_owners(entry)
        except ApiError as error:
            return error.code == 404

    async def _check_owners(self, entry: Entry) -> bool:
        """Delete an object that no owner wants any more; else let it forget those who are going."""
        owners = {uid: self._store.by_uid(uid) for uid in entry.owners}
        waiting = {uid for uid, owner in owners.items() if owner is not None and _waits(owner)}
        staying = {uid for uid, owner in owners.items() if owner is not None} - waiting
        if staying:
            await self._disown(entry, owners.keys() - staying)
        elif waiting:
            await self._delete(entry, "Foreground")
        elif owners:
            await self._delete(entry, "Background")
        return True

    async def _delete(self, entry: Entry, propagation: str) -> None:
        finalizers = entry.object()["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            propagation = "Orphan"
        options = DeleteOptions(propagation=propagation, uid=entry.uid)
        await deleting.delete(self._backend, self._call(entry), options)

    async def _finish_owner(self, entry: Entry) -> bool:
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

    async def _disown(self, dependent: Entry, uids: set[str]) -> None:
        def forget(obj: JsonObject) -> JsonObject:
            meta = obj["metadata"]
            left = [one for one in meta.get("ownerReferences") or () if one.get("uid") not in uids]
            meta["ownerReferences"] = left
            if not left:
                del meta["ownerReferences"]
            return obj

        if uids:
            await writing.change(self._backend, self._call(dependent), forget, trusted=True)

    async def _drop_finalizer(self, entry: Entry, name: str) -> None:
        def drop(obj: JsonObject) -> JsonObject:
            meta = obj["metadata"]
            meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != name]
            return obj

        await writing.change(self._backend, self._call(entry), drop, trusted=True)

    def _call(self, entry: Entry) -> Call:
        kind = self._backend.catalog.stored(entry.key.storage)
        if kind is None:
            raise ApiError(404, "NotFound", f"nothing serves {entry.key.storage}")
        return Call(_USER, kind, entry.key.namespace, entry.key.name)


def _waits(owner: Entry) -> bool:
    """Whether an owner is only there until its dependents are gone."""
    return owner.deleting and FOREGROUND in (owner.object()["metadata"].get("finalizers") or ())


def _blocks(dependent: Entry, uid: str) -> bool:
    owners = dependent.object()["metadata"].get("ownerReferences") or ()
    return any(one.get("uid") == uid and one.get("blockOwnerDeletion") for one in owners)
