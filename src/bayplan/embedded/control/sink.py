"""The one place that acts: carries out steps through the API, and records events.

Every write passes validation, admission and the watch, as if it had come over HTTP. A write that
comes too late (the object is gone, or is another one) is no failure: the change that overtook it
asks the controller again. A write that is refused raises `Refused`, and the engine retries later;
a creation that is tried but once is given up then, unless the server could not say yes or no.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from typing import Protocol

from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.request import ADMIN, Call, DeleteOptions, User
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.subresources import bind
from bayplan.embedded.control.controller import (
    Bind,
    Create,
    Delete,
    Do,
    RequeueAfter,
    Step,
    Tell,
    Update,
)
from bayplan.embedded.control.view import EVENTS

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
            await writes.change(self._backend, call, once_more, trusted=True)


log = logging.getLogger(__name__)

USER = User("system:bayplan-simulation", ("system:masters", "system:authenticated"))
_NOT_FOUND, _CONFLICT, _TOO_MANY, _FAILED = 404, 409, 429, 500


class Refused(Exception):  # noqa: N818 - an outcome that the engine handles
    """The server did not take a write."""


class Sink:
    """Writes for all controllers of one simulation."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.recorder = Recorder(backend, self)
        self.writes = 0

    async def apply(self, step: Step) -> None:
        """Carry out one step; Refused if the server does not want it."""
        try:
            await self._apply(step)
        except ApiError as error:
            if error.code in (_NOT_FOUND, _CONFLICT):
                log.debug("%s: too late: %s", _named(step), error.message)
            elif isinstance(step, Create) and step.once and _is_no(error):
                log.info("%s: given up: %s", _named(step), error.message)
            else:
                raise Refused(f"{_named(step)}: {error.message}") from error

    async def _apply(self, step: Step) -> None:
        self.writes += 1
        match step:
            case Create(storage, obj):
                await self.create(storage, obj)
            case Update(key, edit, subresource):
                call = self._call(key.storage, key.namespace, key.name, subresource)
                await writes.change(self._backend, call, edit, trusted=True)
            case Delete(key, uid, grace):
                options = DeleteOptions(grace, "Background", uid)
                call = self._call(key.storage, key.namespace, key.name)
                await deletion.delete(self._backend, call, options)
            case Bind(key, node):
                call = self._call(key.storage, key.namespace, key.name)
                await bind(self._backend, call, {"target": {"kind": "Node", "name": node}})
            case Tell():
                await self.recorder.record(step)
            case Do(_, act):
                self.writes -= 1
                act()
            case RequeueAfter():
                self.writes -= 1

    async def create(self, storage: str, obj: JsonObject) -> None:
        """Make an object; ApiError if the server does not want it."""
        namespace = obj["metadata"].get("namespace", "")
        call = self._call(storage, namespace, obj["metadata"].get("name", ""))
        await writes.create(self._backend, call, obj)

    def _call(self, storage: str, namespace: str, name: str, subresource: str = "") -> Call:
        return Call(USER, self._kind(storage), namespace, name, subresource)

    def _kind(self, storage: str) -> Kind:
        kind = self._backend.catalog.stored(storage)
        if kind is None:
            raise ApiError(_NOT_FOUND, "NotFound", f"nothing serves {storage}")
        return kind


def _is_no(error: ApiError) -> bool:
    """Whether asking again would get the same answer."""
    return error.code < _FAILED and error.code != _TOO_MANY


def _named(step: Step) -> str:
    match step:
        case Create(storage, obj):
            meta = obj["metadata"]
            return f"create {storage} {meta.get('namespace', '')}/{meta.get('name', '')}"
        case Tell(about=key) | Update(key=key) | Delete(key=key) | Bind(key=key):
            what = type(step).__name__.lower()
            return f"{what} {key.storage} {key.namespace}/{key.name}"
        case Do(what):
            return what
        case RequeueAfter():
            return "again"
