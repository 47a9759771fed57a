"""Serves the kinds of CustomResourceDefinitions while these exist.

Names are accepted at once. A terminating definition waits until its objects are deleted.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.controllers.queue import WorkQueue
from bayplan.embedded.apiserver.crds.definitions import STORAGE, kinds_of
from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import ADMIN, Call, DeletionOptions
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.apiserver.strategies.definitions import CLEANUP, established


class DefinitionController:
    """Keeps the catalog up to date with the definitions."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store
        self._queue: WorkQueue[str] = WorkQueue("definitions", self._work)
        for entry in self._store.list(STORAGE):
            self._serve(entry)

    def start(self) -> None:
        """Follow every change of a definition."""
        for entry in self._store.list(STORAGE):
            self._notice(entry)
        self._store.listeners.append(self._on_change)
        self._queue.start()

    async def stop(self) -> None:
        """Stop following."""
        await self._queue.stop()

    def _on_change(self, change: WatchCacheEvent) -> None:
        key = change.entry.key
        if key.storage == STORAGE:
            if change.deleted:
                self._backend.catalog.drop_custom(key.name)
            else:
                self._serve(change.entry)
                self._notice(change.entry)
        elif change.deleted:
            self._notice_definition(key.storage)

    def _notice_definition(self, name: str) -> None:
        definition = self._store.get(ObjectKey(STORAGE, "", name))
        if definition is not None:
            self._notice(definition)

    def _notice(self, entry: StoreEntry) -> None:
        if entry.is_terminating or not _is_established(entry):
            self._queue.add(entry.key.name)

    def _serve(self, entry: StoreEntry) -> None:
        kinds = kinds_of(entry.object())
        self._backend.catalog.set_custom(entry.key.name, kinds)
        if any(kind.fields for kind in kinds):
            self._store.reindex(entry.key.name)

    async def _work(self, name: str) -> bool:
        """Accept the names of a new definition; delete the objects of a terminating one."""
        definition = self._store.get(ObjectKey(STORAGE, "", name))
        if definition is not None and definition.is_terminating:
            return await self._clear(name)
        await self._change(name, lambda one: established(one, self._backend.now()), "status")
        return True

    async def _clear(self, name: str) -> bool:
        """Delete the objects of a terminating definition; then remove its finalizer."""
        kind = self._backend.catalog.stored(name)
        for entry in list(self._store.list(name)):
            if kind is not None and not entry.is_terminating:
                await self._delete(Call(ADMIN, kind, entry.key.namespace, entry.key.name))
        if not self._store.list(name):
            await self._release(name)
        return True

    async def _delete(self, call: Call) -> None:
        try:
            await deletion.delete(self._backend, call, DeletionOptions(propagation="Background"))
        except StatusError as error:
            if error.code != 404:
                raise

    async def _release(self, name: str) -> None:
        def drop(definition: JsonObject) -> JsonObject:
            meta = definition["metadata"]
            meta["finalizers"] = [one for one in meta.get("finalizers") or () if one != CLEANUP]
            return definition

        await self._change(name, drop)

    async def _change(self, name: str, compute: writes.Compute, subresource: str = "") -> None:
        kind = self._backend.catalog.stored(STORAGE)
        if kind is None:
            return
        call = Call(ADMIN, kind, name=name, subresource=subresource)
        try:
            await writes.change(self._backend, call, compute, trusted=True)
        except StatusError as error:
            if error.code != 404:
                raise


def _is_established(entry: StoreEntry) -> bool:
    conditions = (entry.object().get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Established" for one in conditions)
