"""Which webhooks a write concerns."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.rest.chain import AdmissionRequest
from bayplan.embedded.apiserver.rest.selectors import select
from bayplan.embedded.apiserver.store.entry import Key

_EXEMPT = "admissionregistration.k8s.io"
"""A webhook must not be able to lock its own configuration."""


class Hook(NamedTuple):
    """A webhook that wants to see a write, and the kind as which it wants to see it."""

    configuration: str
    hook: JsonObject
    kind: Kind

    @property
    def name(self) -> str:
        """The webhook's name."""
        return str(self.hook.get("name", ""))


def matching(backend: Backend, storage: str, request: AdmissionRequest) -> list[Hook]:
    """The webhooks of a storage name that a write concerns, in order."""
    configurations = backend.store.list(storage)
    if not configurations or request.call.kind.group == _EXEMPT:
        return []
    found = []
    for entry in configurations:
        for hook in entry.object().get("webhooks") or ():
            kind = _wanted_kind(backend, hook, request)
            if kind is not None and _selected(backend, hook, request):
                found.append(Hook(entry.key.name, hook, kind))
    return found


def _wanted_kind(backend: Backend, hook: JsonObject, request: AdmissionRequest) -> Kind | None:
    own = request.call.kind
    kinds = [own]
    if hook.get("matchPolicy") == "Equivalent":
        kinds += [k for k in backend.catalog if k.storage == own.storage and k is not own]
    for kind in kinds:
        if any(_rule_matches(rule, kind, request) for rule in hook.get("rules") or ()):
            return kind
    return None


def _rule_matches(rule: JsonObject, kind: Kind, request: AdmissionRequest) -> bool:
    scope = rule.get("scope") or "*"
    return (
        _has(rule, "operations", request.operation)
        and _has(rule, "apiGroups", kind.group)
        and _has(rule, "apiVersions", kind.version)
        and scope in ("*", "Namespaced" if kind.namespaced else "Cluster")
        and any(
            _resource_matches(pattern, kind.plural, request.call.subresource)
            for pattern in rule.get("resources") or ()
        )
    )


def _has(rule: JsonObject, field: str, value: str) -> bool:
    values = rule.get(field) or ()
    return "*" in values or value in values


def _resource_matches(pattern: str, plural: str, subresource: str) -> bool:
    resource, _, wanted = pattern.partition("/")
    return resource in ("*", plural) and wanted in (subresource, "*" if subresource else "")


def _selected(backend: Backend, hook: JsonObject, request: AdmissionRequest) -> bool:
    spaces, objects = hook.get("namespaceSelector") or {}, hook.get("objectSelector") or {}
    labels = _namespace_labels(backend, request)
    if spaces and labels is not None and not select(spaces, labels):
        return False
    if not objects:
        return True
    either = (request.object, request.old_object)
    return any(select(objects, _labels(obj)) for obj in either if obj is not None)


def _namespace_labels(backend: Backend, request: AdmissionRequest) -> dict[str, str] | None:
    """The labels of the namespace that a write is in; None if it is in none."""
    call = request.call
    if call.kind.storage == "namespaces":
        return _labels(request.object or request.old_object or {})
    if not call.kind.namespaced:
        return None
    entry = backend.store.get(Key("namespaces", "", call.namespace))
    return entry.labels if entry is not None else {}


def _labels(obj: JsonObject) -> dict[str, str]:
    return (obj.get("metadata") or {}).get("labels") or {}
