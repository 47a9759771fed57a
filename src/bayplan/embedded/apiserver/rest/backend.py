"""What every part of the REST layer works with: the store, the kinds, the time, admission.

Mutating steps run first and may change `request.object`; validating steps run on the final object,
just before it is stored. A step refuses by raising an `ApiError`.

A controller that leaves the name to the server sends the same bytes for every object it makes. What
they say, once checked against the kind's shape, is kept in its checked form: the next time it only
has to be read. Whatever calls for a complaint is looked at anew each time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Literal, NamedTuple

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.errors import ApiError, forbidden, not_found
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.store.entry import Entry, Key
from bayplan.embedded.apiserver.store.store import Store
from bayplan.kube.times import timestamp

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class AdmissionRequest:
    """A write that is about to happen."""

    operation: Operation
    call: Call
    object: JsonObject | None
    old_object: JsonObject | None = None
    options: JsonObject = field(default_factory=dict)


Step = Callable[[AdmissionRequest], Awaitable[None]]


@dataclass(slots=True)
class AdmissionChain:
    """The steps of a server, in order."""

    mutating: list[Step] = field(default_factory=list)
    validating: list[Step] = field(default_factory=list)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Let every mutating step look at the write."""
        for step in self.mutating:
            await step(request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Let every validating step look at the write."""
        for step in self.validating:
            await step(request)


MOST = 128
LARGEST = 16 * 1024
"""Bytes of a body that is worth keeping."""


class Wording(NamedTuple):
    """A new object as a client sent it, and how strictly it is to be read."""

    api_version: str
    kind: str
    validation: str
    body: bytes


class Templates:
    """Wordings that have been seen, and the objects that they stand for, as JSON."""

    def __init__(self) -> None:
        self._checked: OrderedDict[Wording, bytes] = OrderedDict()

    def find(self, wording: Wording | None) -> JsonObject | None:
        """The object that a wording stands for, if it has been seen before."""
        known = self._checked.get(wording) if wording is not None else None
        return None if known is None else decode(known)

    def keep(self, wording: Wording | None, call: Call, obj: JsonObject) -> None:
        """Remember a checked object, if there was nothing to complain of."""
        if wording is None or call.warnings:
            return
        self._checked[wording] = encode(obj)
        if len(self._checked) > MOST:
            self._checked.popitem(last=False)


def wording_of(call: Call, media_type: str, body: bytes) -> Wording | None:
    """A body that may come again; None for one that is not likely to."""
    kind = call.kind
    if media_type != "application/json" or len(body) > LARGEST or kind.custom is not None:
        return None
    if b'"generateName"' not in body or call.field_validation == "Ignore":
        return None
    return Wording(kind.api_version, kind.kind, call.field_validation, body)


@dataclass(slots=True)
class Backend:
    """The parts that requests are carried out with."""

    store: Store
    catalog: Catalog
    clock: Clock
    rng: Random = field(default_factory=SystemRandom)
    admission: AdmissionChain = field(default_factory=AdmissionChain)
    templates: Templates = field(default_factory=Templates)
    allow_privileged: bool = False
    """Whether containers may be privileged."""

    def now(self) -> str:
        """The time as objects carry it."""
        return timestamp(self.clock.now())

    def require(self, call: Call) -> Entry:
        """The object that a call is about; 404 if it is not there."""
        entry = self.store.get(call.key)
        if entry is None:
            raise not_found(call.kind.group, call.kind.plural, call.name)
        return entry


def require_namespace(backend: Backend, call: Call) -> None:
    """Refuse to create in a namespace that is absent or terminating."""
    if not call.kind.namespaced:
        return
    namespace = backend.store.get(Key("namespaces", "", call.namespace))
    if namespace is None:
        raise not_found("", "namespaces", call.namespace)
    if namespace.deleting:
        raise _terminating(call)


def _terminating(call: Call) -> ApiError:
    kind, namespace = call.kind, call.namespace
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(kind.group, kind.plural, call.name, why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    (error.details or {})["causes"] = [cause]
    return error
