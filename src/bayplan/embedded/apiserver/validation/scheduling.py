"""Validation of priority classes, runtime classes and leases."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    immutable,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import dns_label, label_problems, name_problems
from bayplan.embedded.apiserver.validation.numbers import (
    negative,
)
from bayplan.embedded.apiserver.validation.pods.scheduling import toleration_problems
from bayplan.embedded.apiserver.validation.resources import (
    container_resource_problems,
    requirement_problems,
)
from bayplan.embedded.apiserver.validation.selectors import label_deprecation

_HIGHEST = 1_000_000_000
_SYSTEM = "system-"
_SYSTEM_CLASSES = {
    "system-node-critical": 2_000_001_000,
    "system-cluster-critical": 2_000_000_000,
}
_PREEMPTION = ("PreemptLowerPriority", "Never")


def priority_class_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a new priority class."""
    name, found = obj["metadata"].get("name") or "", list[FieldCause]()
    if name.startswith(_SYSTEM):
        if detail := _not_system_class(obj, name):
            message = (
                "priority class names with 'system-' prefix are reserved for system use only. "
            )
            found.append(forbidden_field("metadata.name", f"{message}error: {detail}"))
    elif obj["value"] > _HIGHEST:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        found.append(forbidden_field("value", detail))
    policy = obj.get("preemptionPolicy")
    if not policy:
        found.append(required("preemptionPolicy"))
    elif policy not in _PREEMPTION:
        found.append(not_supported("preemptionPolicy", policy, _PREEMPTION))
    return found


def _not_system_class(obj: JsonObject, name: str) -> str:
    """Return why a class with a reserved name is not a system class."""
    value = _SYSTEM_CLASSES.get(name)
    if value is None:
        return f"{name} is not a known system priority class"
    if obj["value"] != value:
        return f"value of {name} PriorityClass must be {value}"
    return (
        f"globalDefault of {name} PriorityClass must be false" if obj.get("globalDefault") else ""
    )


def priority_class_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a priority class: immutable fields."""
    found: list[FieldCause] = []
    if new["value"] != old["value"]:
        found.append(forbidden_field("value", "may not be changed in an update."))
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        found.append(immutable("preemptionPolicy", new.get("preemptionPolicy")))
    return found


def runtime_class_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a runtime class."""
    handler = obj.get("handler") or ""
    found = name_problems(dns_label, handler, "handler") if handler else [required("handler")]
    if obj.get("overhead") is not None:
        fixed = {"limits": obj["overhead"].get("podFixed") or {}}
        found += requirement_problems(fixed, "overhead", container_resource_problems)
    scheduling = obj.get("scheduling") or {}
    selector = scheduling.get("nodeSelector") or {}
    found += label_problems(selector, "scheduling.nodeSelector")
    return found + _toleration_problems(scheduling.get("tolerations") or [])


def _toleration_problems(tolerations: list[JsonObject]) -> list[FieldCause]:
    field = "scheduling.tolerations"
    found, seen = toleration_problems(tolerations, field), set[tuple[str, ...]]()
    for index, one in enumerate(tolerations):
        key = tuple(one.get(name) or "" for name in ("key", "operator", "value", "effect"))
        if key in seen:
            found.append(duplicate(f"{field}[{index}]", internal_form(one, "core.Toleration")))
        seen.add(key)
    return found


def runtime_class_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse a change of the handler."""
    changed = new.get("handler") != old.get("handler")
    return [immutable("handler", new.get("handler") or "")] if changed else []


def runtime_class_warnings(obj: JsonObject, _: JsonObject | None) -> list[str]:
    """Return the warnings about deprecated labels of a runtime class's nodes."""
    selector = (obj.get("scheduling") or {}).get("nodeSelector") or {}
    return [
        f"scheduling.nodeSelector: {message}"
        for key in selector
        if (message := label_deprecation(key))
    ]


def lease_problems(obj: JsonObject) -> list[FieldCause]:
    """Return the problems of a lease."""
    spec, found = obj["spec"], list[FieldCause]()
    seconds = spec.get("leaseDurationSeconds")
    if seconds is not None and seconds <= 0:
        found.append(bad_value("spec.leaseDurationSeconds", seconds, "must be greater than 0"))
    return found + negative(spec, ("leaseTransitions",), "spec")
