"""The sink: the only place that executes the controllers' actions and records events.

Every write passes validation, admission and the watch, as if it had come over HTTP. A write that
comes too late (the object is gone or was recreated) is no failure: the newer change enqueues the
key again. A refused write raises `WriteRefused`, and the engine retries it later. A `Create` with
`once` set is not retried, unless the server failed to answer.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from typing import Protocol

from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.request import ADMIN, Call, DeletionOptions, UserInfo
from bayplan.embedded.apiserver.rest import deletion, writes
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.subresources import bind
from bayplan.embedded.control.controller import (
    Bind,
    ControllerAction,
    Create,
    Delete,
    LocalAction,
    RecordEvent,
    RequeueAfter,
    Update,
)
from bayplan.embedded.control.view import EVENTS

_REMEMBERED = 4096


class ObjectCreator(Protocol):
    """The part of the sink that the event recorder uses."""

    async def create(self, storage: str, obj: JsonObject) -> None:
        """Create an object."""
        ...


class ClusterEventRecorder:
    """Writes events for one simulation."""

    def __init__(self, backend: Backend, writer: ObjectCreator) -> None:
        self._backend = backend
        self._writer = writer
        self._recorded: OrderedDict[RecordEvent, ObjectKey] = OrderedDict()
        self.warnings: Counter[str] = Counter()
        """Number of warning events by reason since the start."""

    async def record(self, wanted: RecordEvent) -> None:
        """Write an event, or increase its count; does nothing if its object is gone."""
        if wanted.type == "Warning":
            self.warnings[wanted.reason] += 1
        key = self._recorded.get(wanted)
        if key is not None and self._backend.store.get(key) is not None:
            await self._count(key)
            return
        event = self._event(wanted)
        if event is not None:
            await self._writer.create(EVENTS, event)
            self._remember(wanted, event)

    def _remember(self, wanted: RecordEvent, event: JsonObject) -> None:
        meta = event["metadata"]
        key = ObjectKey(EVENTS, meta["namespace"], meta["name"])
        self._recorded[wanted] = key
        if len(self._recorded) > _REMEMBERED:
            self._recorded.popitem(last=False)

    def _event(self, wanted: RecordEvent) -> JsonObject | None:
        entry = self._backend.store.get(wanted.about)
        kind = self._backend.catalog.stored(wanted.about.storage)
        if entry is None or kind is None:
            return None
        about, now = wanted.about, self._backend.now()
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
            "reason": wanted.reason,
            "message": wanted.message,
            "type": wanted.type,
            "source": {"component": wanted.source},
            "reportingComponent": wanted.source,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }

    async def _count(self, key: ObjectKey) -> None:
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

USER = UserInfo("system:bayplan-simulation", ("system:masters", "system:authenticated"))
_NOT_FOUND, _CONFLICT, _TOO_MANY, _FAILED = 404, 409, 429, 500


class WriteRefused(Exception):  # noqa: N818 - an outcome that the engine handles
    """The server refused a write."""


class ActionSink:
    """Executes the actions of all controllers of one simulation."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.recorder = ClusterEventRecorder(backend, self)
        self.writes = 0

    async def apply(self, step: ControllerAction) -> None:
        """Execute one action; WriteRefused if the server refuses it."""
        try:
            await self._apply(step)
        except StatusError as error:
            if error.code in (_NOT_FOUND, _CONFLICT):
                log.debug("%s: skipped an outdated write: %s", _named(step), error.message)
            elif isinstance(step, Create) and step.once and _is_final(error):
                log.info("%s: refused, not retried: %s", _named(step), error.message)
            else:
                raise WriteRefused(f"{_named(step)}: {error.message}") from error

    async def _apply(self, step: ControllerAction) -> None:
        self.writes += 1
        match step:
            case Create(storage, obj):
                await self.create(storage, obj)
            case Update(key, edit, subresource):
                call = self._call(key.storage, key.namespace, key.name, subresource)
                await writes.change(self._backend, call, edit, trusted=True)
            case Delete(key, uid, grace):
                options = DeletionOptions(grace, "Background", uid)
                call = self._call(key.storage, key.namespace, key.name)
                await deletion.delete(self._backend, call, options)
            case Bind(key, node):
                call = self._call(key.storage, key.namespace, key.name)
                await bind(self._backend, call, {"target": {"kind": "Node", "name": node}})
            case RecordEvent():
                await self.recorder.record(step)
            case LocalAction(_, act):
                self.writes -= 1
                act()
            case RequeueAfter():
                self.writes -= 1

    async def create(self, storage: str, obj: JsonObject) -> None:
        """Create an object; StatusError if the server refuses it."""
        namespace = obj["metadata"].get("namespace", "")
        call = self._call(storage, namespace, obj["metadata"].get("name", ""))
        await writes.create(self._backend, call, obj)

    def _call(self, storage: str, namespace: str, name: str, subresource: str = "") -> Call:
        return Call(USER, self._kind(storage), namespace, name, subresource)

    def _kind(self, storage: str) -> ServedKind:
        kind = self._backend.catalog.stored(storage)
        if kind is None:
            raise StatusError(_NOT_FOUND, "NotFound", f"nothing serves {storage}")
        return kind


def _is_final(error: StatusError) -> bool:
    """Return whether a retry would get the same response."""
    return error.code < _FAILED and error.code != _TOO_MANY


def _named(step: ControllerAction) -> str:
    match step:
        case Create(storage, obj):
            meta = obj["metadata"]
            return f"create {storage} {meta.get('namespace', '')}/{meta.get('name', '')}"
        case RecordEvent(about=key) | Update(key=key) | Delete(key=key) | Bind(key=key):
            what = type(step).__name__.lower()
            return f"{what} {key.storage} {key.namespace}/{key.name}"
        case LocalAction(what):
            return what
        case RequeueAfter():
            return "again"
