"""The namespace controller: a deleted namespace goes once everything in it has gone."""

from __future__ import annotations

from bayplan.embedded.apiserver.controllers.queue import Queued, WorkQueue
from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import Call, DeleteOptions, User
from bayplan.embedded.apiserver.rest import deleting, writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import Entry, Key
from bayplan.embedded.apiserver.store.watchcache import Change

_USER = User(
    "system:serviceaccount:kube-system:namespace-controller",
    ("system:masters", "system:authenticated"),
)


class NamespaceController(Queued[str]):
    """Empties namespaces that are being deleted."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._store = backend.store
        self._queue = WorkQueue("namespace-controller", self._work)

    def start(self) -> None:
        """Look at all namespaces once, and then at every change."""
        for entry in self._store.list("namespaces"):
            if entry.deleting:
                self._queue.add(entry.key.name)
        self._store.listeners.append(self._on_change)
        self._queue.start()

    def _on_change(self, change: Change) -> None:
        key = change.entry.key
        if key.storage == "namespaces":
            if change.entry.deleting and not change.deleted:
                self._queue.add(key.name)
        elif change.deleted and key.namespace:
            namespace = self._store.get(Key("namespaces", "", key.namespace))
            if namespace is not None and namespace.deleting:
                self._queue.add(key.namespace)

    async def _work(self, name: str) -> bool:
        entry = self._store.get(Key("namespaces", "", name))
        if entry is None or not entry.deleting:
            return True
        for content in list(self._store.in_namespace(name)):
            if not content.deleting:
                await self._delete(content)
        if not any(True for _ in self._store.in_namespace(name)):
            await self._finalize(entry)
        return True

    async def _delete(self, entry: Entry) -> None:
        kind = self._backend.catalog.stored(entry.key.storage)
        if kind is None:
            return
        call = Call(_USER, kind, entry.key.namespace, entry.key.name)
        try:
            await deleting.delete(self._backend, call, DeleteOptions(propagation="Background"))
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    async def _finalize(self, entry: Entry) -> None:
        kind = self._backend.catalog.stored("namespaces")
        if kind is None:
            return

        def release(namespace: JsonObject) -> JsonObject:
            namespace["spec"] = {}
            return namespace

        call = Call(_USER, kind, name=entry.key.name, subresource="finalize")
        try:
            await writing.change(self._backend, call, release, trusted=True)
        except ApiError as error:
            if error.code != 404:
                raise
