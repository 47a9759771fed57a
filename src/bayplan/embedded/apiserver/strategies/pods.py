"""Strategy of pods: creation, allowed changes, and status."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode
from bayplan.embedded.apiserver.strategies.poddefaults import default_pod, default_pod_addresses
from bayplan.embedded.apiserver.strategies.strategy import (
    Now,
    RestStrategy,
    SubresourceStrategy,
    child,
    items,
)
from bayplan.embedded.apiserver.validation.pods.annotations import (
    APP_ARMOR,
    annotated_profile,
    annotation_change_problems,
    annotation_meanings_problems,
    profile_match_problems,
    static_problems,
)
from bayplan.embedded.apiserver.validation.pods.choices import CONTAINERS, containers_of
from bayplan.embedded.apiserver.validation.pods.resources import qos_class
from bayplan.embedded.apiserver.validation.pods.scheduling import PREFERRED, REQUIRED
from bayplan.embedded.apiserver.validation.pods.spec import (
    creation_problems,
    new_pod_problems,
    pod_spec_problems,
)
from bayplan.embedded.apiserver.validation.pods.status import pod_status_problems
from bayplan.embedded.apiserver.validation.pods.updates import (
    ephemeral_change_problems,
    is_static,
    resize_problems,
    resized,
    spec_change_problems,
    static_pod_problem,
    with_ephemeral,
)
from bayplan.embedded.apiserver.validation.pods.warnings import name_warnings, spec_warnings


def set_condition(status: JsonObject, condition: JsonObject, now: str) -> None:
    """Set a condition; its transition time changes only with its status."""
    conditions = list(status.get("conditions") or ())
    wanted = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, one in enumerate(conditions):
        if one.get("type") == condition["type"]:
            if one.get("status") == condition["status"]:
                wanted["lastTransitionTime"] = one.get("lastTransitionTime")
            conditions[index] = wanted
            break
    else:
        conditions.append(wanted)
    status["conditions"] = conditions


def keep_omitted_status(new: JsonObject, old: JsonObject) -> None:
    """Keep the QoS class and observed generations that a status update omits."""
    status, before = new.setdefault("status", {}), old.get("status") or {}
    for name in ("qosClass", "observedGeneration"):
        if not status.get(name) and before.get(name):
            status[name] = before[name]
    seen: dict[str, list[int]] = {}
    for one in before.get("conditions") or ():
        seen.setdefault(one.get("type") or "", []).append(one.get("observedGeneration") or 0)
    for one in status.get("conditions") or ():
        known = seen.get(one.get("type") or "")
        generation = known.pop(0) if known else 0
        if generation and not one.get("observedGeneration"):
            one["observedGeneration"] = generation


def drop_disabled(spec: JsonObject) -> None:
    """Remove fields of features that are off by default in Kubernetes."""
    spec.pop("schedulingGroup", None)
    for name in CONTAINERS:
        for container in items(spec, name):
            lifecycle = container.get("lifecycle")
            if lifecycle and lifecycle.pop("stopSignal", None) and not lifecycle:
                del container["lifecycle"]
    for volume in items(spec, "volumes"):
        for source in items(volume.get("projected") or {}, "sources"):
            source.pop("clusterTrustBundle", None)
            source.pop("podCertificate", None)


def merge_label_keys(pod: JsonObject) -> None:
    """Add `matchLabelKeys` with the pod's label values to its selectors."""
    labels = pod["metadata"].get("labels") or {}
    for term in _selecting(pod["spec"]):
        selector = term.get("labelSelector")
        if selector is None:
            continue
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
            for key in term.get(field) or ():
                if key in labels:
                    wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                    selector.setdefault("matchExpressions", []).append(wanted)


def _selecting(spec: JsonObject) -> Iterator[JsonObject]:
    affinity = spec.get("affinity") or {}
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        for term in terms.get(PREFERRED) or ():
            yield term.get("podAffinityTerm") or {}
        yield from terms.get(REQUIRED) or ()
    yield from spec.get("topologySpreadConstraints") or ()


def settle_app_armor(pod: JsonObject) -> None:
    """Set the AppArmor field from the old annotation."""
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    if (spec.get("os") or {}).get("name") == "windows" or not annotations:
        return
    whole = spec["securityContext"].get("appArmorProfile")
    for container, _ in containers_of(spec, ""):
        profile = annotated_profile(annotations.get(f"{APP_ARMOR}{container.get('name')}"))
        own = (container.get("securityContext") or {}).get("appArmorProfile")
        if profile is not None and own is None and profile != whole:
            child(container, "securityContext")["appArmorProfile"] = profile


_MAX_CACHED_BYTES = 16 * 1024
"""Limit of a spec whose validation is cached, in bytes."""


class _SpecResult(NamedTuple):
    """Problems, QoS class and warnings of a pod's spec."""

    problems: tuple[FieldCause, ...]
    qos: str
    warnings: tuple[str, ...]


@lru_cache(256)
def _cached_result(spec: bytes, pod: str) -> _SpecResult:
    return _validate_spec(decode(spec), pod)


def _validate_spec(spec: JsonObject, pod: str) -> _SpecResult:
    found = [*pod_spec_problems(spec, "spec", pod), *new_pod_problems(spec, "spec")]
    return _SpecResult(tuple(found), qos_class(spec), tuple(spec_warnings(spec, {})))


def _spec_result(pod: JsonObject) -> _SpecResult:
    """Return problems and warnings of a pod's spec; pods of one template share them."""
    spec = pod["spec"]
    own = any("ephemeral" in one for one in spec.get("volumes") or ())
    name = pod["metadata"].get("name") or "" if own else ""
    written = encode(spec)
    keep = len(written) <= _MAX_CACHED_BYTES
    return _cached_result(written, name) if keep else _validate_spec(spec, name)


def _prepare_create(pod: JsonObject) -> None:
    spec = pod["spec"]
    drop_disabled(spec)
    merge_label_keys(pod)
    settle_app_armor(pod)
    status: JsonObject = {"phase": "Pending", "qosClass": _spec_result(pod).qos}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]
    pod["status"] = status


def _prepare_status(new: JsonObject, old: JsonObject, _: Now) -> None:
    keep_omitted_status(new, old)
    default_pod_addresses(new["status"])


def _prepare_update(new: JsonObject, _: JsonObject) -> None:
    drop_disabled(new["spec"])


def _validate(pod: JsonObject) -> list[FieldCause]:
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    return [
        *annotation_meanings_problems(annotations, spec, "metadata.annotations"),
        *static_problems(annotations, spec),
        *_spec_result(pod).problems,
    ]


def _validate_new(pod: JsonObject) -> list[FieldCause]:
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    return [*creation_problems(spec, "spec"), *profile_match_problems(annotations, spec, "spec")]


def _validate_update(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    annotations, before = (one["metadata"].get("annotations") or {} for one in (new, old))
    return [
        *annotation_change_problems(annotations, before, "metadata.annotations"),
        *([] if new["spec"] == old["spec"] else spec_change_problems(new["spec"], old["spec"])),
    ]


def _validate_status(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    annotations, before = (one["metadata"].get("annotations") or {} for one in (new, old))
    found = annotation_change_problems(annotations, before, "metadata.annotations")
    found += annotation_meanings_problems(annotations, new["spec"], "metadata.annotations")
    return found + pod_status_problems(new, old)


def _warnings(pod: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about a new pod."""
    if old is not None:
        return []
    meta = pod["metadata"]
    annotated = bool(meta.get("annotations"))
    known = spec_warnings(pod["spec"], meta) if annotated else _spec_result(pod).warnings
    return [*name_warnings(pod), *known]


def _validate_resize(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    if is_static(old):
        return static_pod_problem("cannot be resized")
    return [*_validate(new), *resize_problems(new, old)]


def _validate_ephemeral(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    if is_static(old):
        return static_pod_problem("do not support ephemeral containers")
    return [*_validate(new), *ephemeral_change_problems(new, old)]


PODS = RestStrategy(
    default=default_pod,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    validate=_validate,
    validate_new=_validate_new,
    validate_update=_validate_update,
    validate_status=_validate_status,
    parts={
        "resize": SubresourceStrategy(resized, _validate_resize),
        "ephemeralcontainers": SubresourceStrategy(with_ephemeral, _validate_ephemeral),
    },
    warnings=_warnings,
    returns_deleted=True,
)
