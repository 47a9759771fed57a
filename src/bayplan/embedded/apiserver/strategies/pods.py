"""Pods: how they begin, and the few ways in which they may change."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone, decode, encode
from bayplan.embedded.apiserver.strategies.poddefaults import default_pod_spec
from bayplan.embedded.apiserver.strategies.podrules import spec_problems
from bayplan.embedded.apiserver.strategies.strategy import Strategy, child, fill, items
from bayplan.embedded.apiserver.validation.causes import forbidden_field, required
from bayplan.kube.quantity import parse as amount

_FROZEN = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
    "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set "
    "to 1 if it was previously negative)"
)
_WORTH_KEEPING = 16 * 1024
"""Bytes of a spec whose judgement is kept."""
_WHILE_GATED = ("nodeSelector", "affinity")
"""What may still be narrowed while the scheduler has not looked at the pod."""


def _default(pod: JsonObject) -> None:
    if pod.get("spec") is not None:
        default_pod_spec(pod["spec"])
        fill(pod["spec"], enableServiceLinks=True)


class _Judged(NamedTuple):
    """What is to be said of a spec, whoever has it."""

    problems: tuple[Cause, ...]
    qos: str


@lru_cache(256)
def _judged_before(spec: bytes) -> _Judged:
    return _judge(decode(spec))


def _judge(spec: JsonObject) -> _Judged:
    return _Judged(tuple(spec_problems(spec, "spec")), qos_class(spec))


def _judged(spec: JsonObject) -> _Judged:
    """What is to be said of a spec; pods of one template are judged once."""
    written = encode(spec)
    return _judged_before(written) if len(written) <= _WORTH_KEEPING else _judge(spec)


def _prepare_create(pod: JsonObject) -> None:
    spec = child(pod, "spec")
    status: JsonObject = {"phase": "Pending", "qosClass": _judged(spec).qos}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": pod["metadata"]["creationTimestamp"],
            }
        ]
    pod["status"] = status


def _prepare_update(new: JsonObject, old: JsonObject) -> None:
    qos = (old.get("status") or {}).get("qosClass")
    if qos:
        child(new, "status")["qosClass"] = qos


def qos_class(spec: JsonObject) -> str:
    """Guaranteed, Burstable or BestEffort."""
    containers = [*items(spec, "containers"), *items(spec, "initContainers")]
    resources = [container.get("resources") or {} for container in containers]
    if not any(_asks(one) for one in resources):
        return "BestEffort"
    return "Guaranteed" if all(_is_guaranteed(one) for one in resources) else "Burstable"


def _asks(resources: JsonObject) -> bool:
    return any(
        amount(value) > 0
        for field in ("requests", "limits")
        for name, value in (resources.get(field) or {}).items()
        if name in ("cpu", "memory")
    )


def _is_guaranteed(resources: JsonObject) -> bool:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    return all(
        name in limits and amount(requests.get(name, limits[name])) == amount(limits[name])
        for name in ("cpu", "memory")
    )


def _validate(pod: JsonObject) -> list[Cause]:
    spec = pod.get("spec")
    return list(_judged(spec).problems) if spec else [required("spec.containers")]


def _validate_update(new: JsonObject, old: JsonObject) -> list[Cause]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if before == after:
        return []
    found = _gate_problems(after, before)
    if not found and _comparable(after, before) != _comparable(before, before):
        found.append(forbidden_field("spec", _FROZEN))
    return found


def _gate_problems(after: JsonObject, before: JsonObject) -> list[Cause]:
    had = {gate.get("name") for gate in items(before, "schedulingGates")}
    return [
        forbidden_field(
            f"spec.schedulingGates[{index}].name",
            f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'",
        )
        for index, gate in enumerate(items(after, "schedulingGates"))
        if gate.get("name") not in had
    ]


def _comparable(spec: JsonObject, before: JsonObject) -> JsonObject:
    """A spec without what may change, given what it was before."""
    spec = clone(spec)
    for field in ("containers", "initContainers"):
        for container in items(spec, field):
            container.pop("image", None)
            container.pop("imagePullPolicy", None)
    for field in ("activeDeadlineSeconds", "schedulingGates"):
        spec.pop(field, None)
    kept = before.get("tolerations") or []
    tolerations = spec.get("tolerations") or []
    if all(toleration in tolerations for toleration in kept):
        spec.pop("tolerations", None)
    if (before.get("terminationGracePeriodSeconds") or 0) < 0:
        spec.pop("terminationGracePeriodSeconds", None)
    if before.get("schedulingGates"):
        for field in _WHILE_GATED:
            spec.pop(field, None)
    return spec


PODS = Strategy(
    default=_default,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    validate=_validate,
    validate_update=_validate_update,
    returns_deleted=True,
)
