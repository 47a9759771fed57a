"""Pods: how they begin, and the few ways in which they may change."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, decode, encode
from bayplan.embedded.apiserver.strategies.poddefaults import default_pod, default_pod_addresses
from bayplan.embedded.apiserver.strategies.podsettling import (
    drop_disabled,
    merge_label_keys,
    settle_app_armor,
)
from bayplan.embedded.apiserver.strategies.podstatus import keep_unsaid
from bayplan.embedded.apiserver.strategies.strategy import Now, Part, Strategy
from bayplan.embedded.apiserver.validation.pods.annotations import (
    annotation_change_problems,
    annotation_meanings_problems,
    profile_match_problems,
    static_problems,
)
from bayplan.embedded.apiserver.validation.pods.resources import qos_class
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

_WORTH_KEEPING = 16 * 1024
"""Bytes of a spec whose judgement is kept."""


class _Judged(NamedTuple):
    """What is to be said of a spec, whoever has it."""

    problems: tuple[Cause, ...]
    qos: str
    warnings: tuple[str, ...]


@lru_cache(256)
def _judged_before(spec: bytes, pod: str) -> _Judged:
    return _judge(decode(spec), pod)


def _judge(spec: JsonObject, pod: str) -> _Judged:
    found = [*pod_spec_problems(spec, "spec", pod), *new_pod_problems(spec, "spec")]
    return _Judged(tuple(found), qos_class(spec), tuple(spec_warnings(spec, {})))


def _judged(pod: JsonObject) -> _Judged:
    """What is to be said of a pod's spec; pods of one template are judged once."""
    spec = pod["spec"]
    own = any("ephemeral" in one for one in spec.get("volumes") or ())
    name = pod["metadata"].get("name") or "" if own else ""
    written = encode(spec)
    keep = len(written) <= _WORTH_KEEPING
    return _judged_before(written, name) if keep else _judge(spec, name)


def _prepare_create(pod: JsonObject) -> None:
    spec = pod["spec"]
    drop_disabled(spec)
    merge_label_keys(pod)
    settle_app_armor(pod)
    status: JsonObject = {"phase": "Pending", "qosClass": _judged(pod).qos}
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
    keep_unsaid(new, old)
    default_pod_addresses(new["status"])


def _prepare_update(new: JsonObject, _: JsonObject) -> None:
    drop_disabled(new["spec"])


def _validate(pod: JsonObject) -> list[Cause]:
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    return [
        *annotation_meanings_problems(annotations, spec, "metadata.annotations"),
        *static_problems(annotations, spec),
        *_judged(pod).problems,
    ]


def _validate_new(pod: JsonObject) -> list[Cause]:
    annotations, spec = pod["metadata"].get("annotations") or {}, pod["spec"]
    return [*creation_problems(spec, "spec"), *profile_match_problems(annotations, spec, "spec")]


def _validate_update(new: JsonObject, old: JsonObject) -> list[Cause]:
    annotations, before = (one["metadata"].get("annotations") or {} for one in (new, old))
    return [
        *annotation_change_problems(annotations, before, "metadata.annotations"),
        *([] if new["spec"] == old["spec"] else spec_change_problems(new["spec"], old["spec"])),
    ]


def _validate_status(new: JsonObject, old: JsonObject) -> list[Cause]:
    annotations, before = (one["metadata"].get("annotations") or {} for one in (new, old))
    found = annotation_change_problems(annotations, before, "metadata.annotations")
    found += annotation_meanings_problems(annotations, new["spec"], "metadata.annotations")
    return found + pod_status_problems(new, old)


def _warnings(pod: JsonObject, old: JsonObject | None) -> list[str]:
    """A pod's author is told once, when it is new."""
    if old is not None:
        return []
    meta = pod["metadata"]
    annotated = bool(meta.get("annotations"))
    known = spec_warnings(pod["spec"], meta) if annotated else _judged(pod).warnings
    return [*name_warnings(pod), *known]


def _validate_resize(new: JsonObject, old: JsonObject) -> list[Cause]:
    if is_static(old):
        return static_pod_problem("cannot be resized")
    return [*_validate(new), *resize_problems(new, old)]


def _validate_ephemeral(new: JsonObject, old: JsonObject) -> list[Cause]:
    if is_static(old):
        return static_pod_problem("do not support ephemeral containers")
    return [*_validate(new), *ephemeral_change_problems(new, old)]


PODS = Strategy(
    default=default_pod,
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    prepare_status=_prepare_status,
    validate=_validate,
    validate_new=_validate_new,
    validate_update=_validate_update,
    validate_status=_validate_status,
    parts={
        "resize": Part(resized, _validate_resize),
        "ephemeralcontainers": Part(with_ephemeral, _validate_ephemeral),
    },
    warnings=_warnings,
    returns_deleted=True,
)
