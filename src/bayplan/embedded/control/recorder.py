"""Events: said once, counted when repeated. The server removes those that are old."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.request import ADMIN, Call
from bayplan.embedded.apiserver.rest import writing
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Tell
from bayplan.embedded.control.storages import EVENTS

_REMEMBERED = 4096


class Writer(Protocol):
    """What the recorder needs of the sink."""

    async def create(self, storage: str, obj: JsonObject) -> None:
        """Make an object."""
        ...


class Recorder:
    """Writes events for one simulation."""

    def __init__(self, backend: Backend, writer: Writer) -> None:
        self._backend = backend
        self._writer = writer
        self._said: OrderedDict[Tell, Key] = OrderedDict()
        self.warnings: Counter[str] = Counter()
        """How often each was said since the beginning."""

    async def record(self, told: Tell) -> None:
        """Write an event, or count it once more; nothing if its object is gone."""
        if told.type == "Warning":
            self.warnings[told.reason] += 1
        key = self._said.get(told)
        if key is not None and self._backend.store.get(key) is not None:
            await self._count(key)
            return
        event = self._event(told)
        if event is not None:
            await self._writer.create(EVENTS, event)
            self._remember(told, event)

    def _remember(self, told: Tell, event: JsonObject) -> None:
        meta = event["metadata"]
        key = Key(EVENTS, meta["namespace"], meta["name"])
        self._said[told] = key
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)

    def _event(self, told: Tell) -> JsonObject | None:
        entry = self._backend.store.get(told.about)
        kind = self._backend.catalog.stored(told.about.storage)
        if entry is None or kind is None:
            return None
        about, now = told.about, self._backend.now()
        suffix = f"{self._backend.rng.getrandbits(64):016x}"
        return {
            "metadata": {
                "name": f"{about.name[:230]}.{suffix}",
                "namespace": about.namespace or "default",
            },
            "involvedObject": {
                "kind": kind.kind,
                "apiVersion": kind.api_version,
                "name": about.name,
                "uid": entry.uid,
                **({"namespace": about.namespace} if about.namespace else {}),
            },
            "reason": told.reason,
            "message": told.message,
            "type": told.type,
            "source": {"component": told.source},
            "reportingComponent": told.source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def _count(self, key: Key) -> None:
        now = self._backend.now()

        def once_more(event: JsonObject) -> JsonObject:
            event["count"] = (event.get("count") or 1) + 1
            event["lastTimestamp"] = now
            return event

        kind = self._backend.catalog.stored(EVENTS)
        if kind is not None:
            call = Call(ADMIN, kind, key.namespace, key.name)
            await writing.change(self._backend, call, once_more, trusted=True)
