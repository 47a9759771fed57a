"""Validation of nodes."""

from __future__ import annotations

import re

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.addresses import (
    cidr_problems,
    cidr_warnings,
    dual_stack_problems,
)
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    label_value,
    name_problems,
    qualified_name,
    too_many_letters,
)
from bayplan.embedded.apiserver.validation.numbers import NOT_POSITIVE
from bayplan.embedded.apiserver.validation.resources import amount_problems
from bayplan.kube.names import MAX_NAME

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TAINTS = "scheduler.alpha.kubernetes.io/taints"
_AVOIDED = "scheduler.alpha.kubernetes.io/preferAvoidPods"
_FEATURE = re.compile(r"[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*\Z")
_ONCE = 'except from "" to valid'


def node_problems(node: JsonObject) -> list[FieldCause]:
    """Return the problems of a node; those of taints are reported under `metadata`."""
    spec, status = node["spec"], node["status"]
    found = _annotation_problems(node["metadata"].get("annotations") or {})
    found += taint_problems(spec.get("taints") or [], "metadata.taints")
    found += _resource_problems(status)
    swap = ((status.get("nodeInfo") or {}).get("swap") or {}).get("capacity")
    if swap is not None and swap <= 0:
        found.append(bad_value("metadata.nodeSwapStatus.capacity", swap, NOT_POSITIVE))
    found += _feature_problems(status.get("declaredFeatures") or [], "status.declaredFeatures")
    ranges = spec.get("podCIDRs") or []
    for index, one in enumerate(ranges):
        found += cidr_problems(one, f"spec.podCIDRs[{index}]")
    return found + (dual_stack_problems(ranges, "spec.podCIDRs") if len(ranges) > 1 else [])


def _annotation_problems(annotations: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    if annotations.get(_TAINTS):
        found += _serialized_taint_problems(annotations[_TAINTS])
    if annotations.get(_AVOIDED):
        found += _avoidance_problems(annotations[_AVOIDED])
    return found


def _serialized_taint_problems(text: str) -> list[FieldCause]:
    taints = _read(text)
    if not isinstance(taints, list) or not all(isinstance(one, dict) for one in taints):
        return [bad_value("metadata.annotations", _TAINTS, "not a list of taints")]
    return taint_problems(taints, f"metadata.annotations.{_TAINTS}")


def _avoidance_problems(text: str) -> list[FieldCause]:
    """Return the problems of the preferAvoidPods annotation, which is no longer used."""
    wanted, field = _read(text), "metadata.annotations"
    if not isinstance(wanted, dict):
        return [bad_value(f"{field}.AvoidPods", _AVOIDED, "not an object")]
    found: list[FieldCause] = []
    for index, one in enumerate(wanted.get("preferAvoidPods") or ()):
        place = f"{field}.{_AVOIDED}[{index}].PodSignature"
        owner = (one.get("podSignature") or {}).get("podController")
        if owner is None:
            found.append(required(place))
        elif not owner.get("controller"):
            detail = "must point to a controller"
            found.append(bad_value(f"{place}.PodController.Controller", False, detail))
    return found


def _read(text: str) -> JsonValue:
    try:
        return decode(text)
    except (ValueError, RecursionError):
        return None


def taint_problems(taints: list[JsonObject], field: str) -> list[FieldCause]:
    """Return the problems of taints; key and effect must be unique."""
    found: list[FieldCause] = []
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(taints):
        place, key = f"{field}[{index}]", taint.get("key") or ""
        effect, value = taint.get("effect") or "", taint.get("value") or ""
        found += name_problems(qualified_name, key, f"{place}.key")
        if complaints := label_value(value):
            found.append(bad_value(f"{place}.value", value, ";".join(complaints)))
        if not effect:
            found.append(required(f"{place}.effect"))
        elif effect not in _EFFECTS:
            found.append(not_supported(f"{place}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            found.append(duplicate(place, internal_form(taint, "core.Taint"), detail))
        seen.add((key, effect))
    return found


def _resource_problems(status: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    for field in ("capacity", "allocatable"):
        for name, amount in (status.get(field) or {}).items():
            found += amount_problems(name, amount, f"status.{field}.{name}")
    return found


def _feature_problems(features: list[str], field: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, name in enumerate(features):
        if detail := _feature_fault(name):
            found.append(bad_value(f"{field}[{index}]", name, detail))
        following = features[index + 1] if index + 1 < len(features) else None
        if following == name:
            found.append(duplicate(f"{field}[{index + 1}]", name))
        elif following is not None and following < name:
            detail = "list must be sorted alphabetically"
            found.append(bad_value(f"{field}[{index + 1}]", following, detail))
    return found


def _feature_fault(name: str) -> str:
    if len(name.encode()) > MAX_NAME:
        return f'invalid feature name "{name}": {too_many_letters(MAX_NAME)}'
    if _FEATURE.match(name):
        return ""
    return (
        f'invalid feature name "{name}": must start with an UpperCamelCase segment, with '
        "subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and "
        "contain only alphanumeric characters and slashes"
    )


def node_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a node: fields that are immutable once set."""
    spec, before = new["spec"], old["spec"]
    found = _address_problems(new["status"])
    if before.get("podCIDRs") and spec.get("podCIDRs") != before["podCIDRs"]:
        detail = f"node updates may not change podCIDR {_ONCE}"
        found.append(forbidden_field("spec.podCIDRs", detail))
    if before.get("providerID") and spec.get("providerID") != before["providerID"]:
        detail = f"node updates may not change providerID {_ONCE}"
        found.append(forbidden_field("spec.providerID", detail))
    if spec.get("externalID") != before.get("externalID"):
        found.append(forbidden_field("spec.externalID", "may not be updated"))
    return found


def _address_problems(status: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    seen: set[tuple[str, str]] = set()
    for index, one in enumerate(status.get("addresses") or ()):
        address = (one.get("type") or "", one.get("address") or "")
        if address in seen:
            shown = internal_form(one, "core.NodeAddress")
            found.append(duplicate(f"status.addresses[{index}]", shown))
        seen.add(address)
    return found


def node_status_problems(new: JsonObject, _: JsonObject) -> list[FieldCause]:
    """Return the problems of a node's status."""
    status = new["status"]
    found = _annotation_problems(new["metadata"].get("annotations") or {})
    found += _resource_problems(status)
    found += _feature_problems(status.get("declaredFeatures") or [], "status.declaredFeatures")
    return found + _address_problems(status)


def node_warnings(node: JsonObject, _: JsonObject | None) -> list[str]:
    """Return the warnings about deprecated fields of a node."""
    spec, found = node["spec"], list[str]()
    if spec.get("configSource") is not None:
        found.append("spec.configSource: the feature is removed")
    if spec.get("externalID"):
        found.append("spec.externalID: this field is deprecated, and is unused by Kubernetes")
    for index, one in enumerate(spec.get("podCIDRs") or ()):
        found += cidr_warnings(one, f"spec.podCIDRs[{index}]")
    return found
