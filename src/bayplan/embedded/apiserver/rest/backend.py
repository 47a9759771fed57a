"""The dependencies of the REST layer: the store, the kinds, the clock, admission.

Mutating admission steps run first and may change `request.object`; validating steps run on the
final object, just before it is stored. A step refuses by raising a `StatusError`.

A controller that uses `generateName` sends the same bytes for every object that it creates. The
decoded and validated object of such a body is cached, so that the next one only has to be copied.
Bodies that cause warnings are not cached.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import Literal, NamedTuple

from bayplan.base.clock import Clock
from bayplan.embedded.apiserver.errors import StatusError, forbidden, not_found
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.request import Call
from bayplan.embedded.apiserver.store.entry import ObjectKey, StoreEntry
from bayplan.embedded.apiserver.store.store import ApiObjectStore
from bayplan.kube.times import timestamp

Operation = Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]


@dataclass(slots=True)
class AdmissionRequest:
    """A write before it is stored."""

    operation: Operation
    call: Call
    object: JsonObject | None
    old_object: JsonObject | None = None
    options: JsonObject = field(default_factory=dict)


AdmissionStep = Callable[[AdmissionRequest], Awaitable[None]]


@dataclass(slots=True)
class AdmissionChain:
    """The admission steps of a server, in order."""

    mutating: list[AdmissionStep] = field(default_factory=list)
    validating: list[AdmissionStep] = field(default_factory=list)

    async def mutate(self, request: AdmissionRequest) -> None:
        """Run every mutating step."""
        for step in self.mutating:
            await step(request)

    async def validate(self, request: AdmissionRequest) -> None:
        """Run every validating step."""
        for step in self.validating:
            await step(request)


MAX_CACHED = 128
MAX_CACHED_BYTES = 16 * 1024
"""Limit of a cached body, in bytes."""


class CreateRequestKey(NamedTuple):
    """The body of a create request, and the level of field validation."""

    api_version: str
    kind: str
    validation: str
    body: bytes


class CreateRequestCache:
    """Bodies of create requests, and the validated objects that they stand for, as JSON."""

    def __init__(self) -> None:
        self._checked: OrderedDict[CreateRequestKey, bytes] = OrderedDict()

    def find(self, wording: CreateRequestKey | None) -> JsonObject | None:
        """Return the object of a body that is in the cache, or None."""
        known = self._checked.get(wording) if wording is not None else None
        return None if known is None else decode(known)

    def keep(self, wording: CreateRequestKey | None, call: Call, obj: JsonObject) -> None:
        """Cache a validated object, unless it caused warnings."""
        if wording is None or call.warnings:
            return
        self._checked[wording] = encode(obj)
        if len(self._checked) > MAX_CACHED:
            self._checked.popitem(last=False)


def create_request_key(call: Call, media_type: str, body: bytes) -> CreateRequestKey | None:
    """Return the cache key of a body; None if it is not likely to come again."""
    kind = call.kind
    if media_type != "application/json" or len(body) > MAX_CACHED_BYTES or kind.custom is not None:
        return None
    if b'"generateName"' not in body or call.field_validation == "Ignore":
        return None
    return CreateRequestKey(kind.api_version, kind.kind, call.field_validation, body)


@dataclass(slots=True)
class Backend:
    """The dependencies of REST operations."""

    store: ApiObjectStore
    catalog: Catalog
    clock: Clock
    rng: Random = field(default_factory=SystemRandom)
    admission: AdmissionChain = field(default_factory=AdmissionChain)
    templates: CreateRequestCache = field(default_factory=CreateRequestCache)
    allow_privileged: bool = False
    """Whether containers may be privileged."""

    def now(self) -> str:
        """Return the time as objects store it."""
        return timestamp(self.clock.now())

    def require(self, call: Call) -> StoreEntry:
        """Return the object of a call; 404 if it does not exist."""
        entry = self.store.get(call.key)
        if entry is None:
            raise not_found(call.kind.group, call.kind.plural, call.name)
        return entry


def require_namespace(backend: Backend, call: Call) -> None:
    """Refuse to create in a namespace that is absent or terminating."""
    if not call.kind.namespaced:
        return
    namespace = backend.store.get(ObjectKey("namespaces", "", call.namespace))
    if namespace is None:
        raise not_found("", "namespaces", call.namespace)
    if namespace.is_terminating:
        raise _terminating(call)


def _terminating(call: Call) -> StatusError:
    kind, namespace = call.kind, call.namespace
    detail = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(kind.group, kind.plural, call.name, detail)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    (error.details or {})["causes"] = [cause]
    return error
