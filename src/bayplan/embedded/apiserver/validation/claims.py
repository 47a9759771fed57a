"""Validation of persistent volume claims."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import difference
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    immutable,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.numbers import (
    basic_problems,
    is_fraction,
    negative_amount,
    not_positive,
)
from bayplan.embedded.apiserver.validation.resources import is_native
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.embedded.apiserver.validation.volumes import (
    CLASS_ADVICE,
    OLD_CLASS,
    VOLUME_MODES,
    access_mode_problems,
)
from bayplan.kube import quantity

_RESIZING = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_FROZEN = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
_SIZE = "spec.resources.requests.storage"


def claim_problems(claim: JsonObject) -> list[FieldCause]:
    """Return the problems of a claim."""
    return claim_spec_problems(claim["spec"], "spec")


def claim_spec_problems(
    spec: JsonObject, field: str, old: JsonObject | None = None
) -> list[FieldCause]:
    """Return the problems of a claim's spec, also of a claim template's."""
    modes, found = spec.get("accessModes") or [], list[FieldCause]()
    if not modes:
        detail = "at least 1 access mode is required"
        found.append(required(f"{field}.accessModes", detail))
    found += selector_problems(spec.get("selector"), f"{field}.selector")
    found += access_mode_problems(modes, f"{field}.accessModes")
    found += _size_problems(_size(spec), f"{field}.resources[storage]")
    if spec.get("storageClassName"):
        found += name_problems(subdomain, spec["storageClassName"], f"{field}.storageClassName")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        found.append(not_supported(f"{field}.volumeMode", mode, VOLUME_MODES))
    found += _data_source_problems(spec, field, known=_has_group(old or {}))
    if spec.get("volumeAttributesClassName"):
        place = f"{field}.volumeAttributesClassName"
        found += name_problems(subdomain, spec["volumeAttributesClassName"], place)
    return found


def _size(spec: JsonObject) -> str | None:
    found: str | None = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    return found


def _size_problems(size: str | None, field: str) -> list[FieldCause]:
    return [required(field)] if size is None else not_positive(size, field)


def _has_group(spec: JsonObject) -> bool:
    """Return whether a data source has an API group."""
    sources = (spec.get(name) or {} for name in ("dataSource", "dataSourceRef"))
    return any(source.get("apiGroup") is not None for source in sources)


def _data_source_problems(spec: JsonObject, field: str, *, known: bool) -> list[FieldCause]:
    found: list[FieldCause] = []
    for name in ("dataSource", "dataSourceRef"):
        if (source := spec.get(name)) is not None:
            found += _reference_problems(source, f"{field}.{name}", known=known)
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef") or {}
    if source is None or not reference:
        return found
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        return [*found, bad_value(field, {}, detail)]
    if any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        found.append(bad_value(field, {}, "must match dataSourceRef"))
    return found


def _reference_problems(source: JsonObject, field: str, *, known: bool) -> list[FieldCause]:
    found = [required(f"{field}.{name}") for name in ("name", "kind") if not source.get(name)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(bad_value(field, kind, detail))
    if group and not known:
        found += name_problems(subdomain, group, f"{field}.apiGroup")
    if source.get("namespace"):
        found += name_problems(dns_label, source["namespace"], f"{field}.namespace")
    return found


def claim_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a claim: immutable fields."""
    before, after = dict(old["spec"]), dict(new["spec"])
    found = _class_change_problems(new, old)
    _allow_changes(new, old, before, after)
    if after != before:
        shown = difference(before, after, "core.PersistentVolumeClaimSpec")
        found.append(forbidden_field("spec", f"{_FROZEN}\n{shown}"))
    found += _shrink_problems(new, old)
    if new["spec"].get("volumeMode") != old["spec"].get("volumeMode"):
        found.append(immutable("volumeMode", new["spec"].get("volumeMode")))
    return found + _attribute_change_problems(new, old)


def _annotated_class(claim: JsonObject) -> str | None:
    found: str | None = (claim["metadata"].get("annotations") or {}).get(OLD_CLASS)
    return found


def _moves_class(new: JsonObject, old: JsonObject) -> bool:
    """Return whether the class moves from the old annotation into the spec."""
    annotated = _annotated_class(old)
    return (
        annotated is not None
        and old["spec"].get("storageClassName") is None
        and new["spec"].get("storageClassName") == annotated
        and _annotated_class(new) in (None, annotated)
    )


def _class_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    after = _annotated_class(new) or ""
    if _moves_class(new, old) or after == (_annotated_class(old) or ""):
        return []
    return [immutable(f"metadata.annotations.{OLD_CLASS}", after)]


def _allow_changes(new: JsonObject, old: JsonObject, before: JsonObject, after: JsonObject) -> None:
    """Remove from two specs the fields that may differ."""
    if not before.get("volumeName"):
        before["volumeName"] = after.get("volumeName")
        _drop_absent(before, "volumeName")
    class_ = after.get("storageClassName")
    gets_class = before.get("storageClassName") is None and class_ is not None
    if gets_class and _annotated_class(old) in (None, class_):
        del after["storageClassName"]
    if (new.get("status") or {}).get("phase") != "Bound":
        return
    after["volumeAttributesClassName"] = before.get("volumeAttributesClassName")
    _drop_absent(after, "volumeAttributesClassName")
    requests = (after.get("resources") or {}).get("requests")
    if requests is not None:
        kept = {**requests, "storage": _size(before) or "0"}
        after["resources"] = {**after["resources"], "requests": kept}


def _drop_absent(spec: JsonObject, name: str) -> None:
    if spec.get(name) is None:
        spec.pop(name, None)


def _shrink_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse a request below the claim's actual capacity."""
    before, after = (quantity.parse(_size(one["spec"]) or "0") for one in (old, new))
    got = ((old.get("status") or {}).get("capacity") or {}).get("storage") or "0"
    if after < before and after <= quantity.parse(got):
        return [forbidden_field(_SIZE, "field can not be less than status.capacity")]
    return []


def _attribute_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    name = "volumeAttributesClassName"
    after, current = new["spec"].get(name), "status.currentVolumeAttributesClassName"
    applied = (old.get("status") or {}).get("currentVolumeAttributesClassName") is not None
    if after == old["spec"].get(name) or not applied or after:
        return []
    to = "nil" if after is None else "empty string"
    detail = f"update to {to} is forbidden when {current} is not nil"
    return [forbidden_field(f"spec.{name}", detail)]


def claim_status_problems(new: JsonObject, _: JsonObject) -> list[FieldCause]:
    """Return the problems of a claim's status."""
    status, found = new.get("status") or {}, list[FieldCause]()
    if not new["spec"].get("accessModes"):
        found.append(required("Spec.accessModes"))
    for name, amount in (status.get("capacity") or {}).items():
        found += basic_problems(amount, f"status.capacity[{name}]")
    for name, state in (status.get("allocatedResourceStatuses") or {}).items():
        found += _resource_problems(name, "status.allocatedResourceStatuses")
        if state not in _RESIZING:
            choices = sorted(_RESIZING)
            found.append(not_supported("status.allocatedResourceStatuses", name, choices))
    for name, amount in (status.get("allocatedResources") or {}).items():
        place = f"status.allocatedResources[{name}]"
        found += (
            _resource_problems(name, "status.allocatedResources")
            or basic_problems(amount, place)
            or negative_amount(amount, place)
        )
    return found


def _resource_problems(name: str, field: str) -> list[FieldCause]:
    found = name_problems(qualified_name, name, field)
    if found or name == "storage" or not is_native(name):
        return found
    return [not_supported(field, name, ("storage",))]


def claim_warnings(claim: JsonObject, _: JsonObject | None) -> list[str]:
    """Return the warnings about deprecated annotations and fractional sizes of a claim."""
    found = []
    if _annotated_class(claim) is not None:
        found.append(f"metadata.annotations[{OLD_CLASS}]: {CLASS_ADVICE}")
    return found + claim_spec_warnings(claim["spec"], "spec")


def claim_spec_warnings(spec: JsonObject, field: str) -> list[str]:
    """Return the warnings about sizes that are not whole bytes."""
    resources = spec.get("resources") or {}
    return [
        f'{field}.resources.{name}[storage]: fractional byte value "{resources[name]["storage"]}" '
        "is invalid, must be an integer"
        for name in ("requests", "limits")
        if is_fraction(resources.get(name), "storage")
    ]
