"""Validation of pod templates and of replica counts in a status."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, not_supported
from bayplan.embedded.apiserver.validation.names import annotation_problems, label_problems
from bayplan.embedded.apiserver.validation.numbers import negative
from bayplan.embedded.apiserver.validation.pods.annotations import (
    annotation_meanings_problems,
    profile_match_problems,
)
from bayplan.embedded.apiserver.validation.pods.spec import pod_spec_problems
from bayplan.kube.meta import LabelSelector
from bayplan.kube.selectors import compile_selector


def template_problems(template: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of a pod template: labels, annotations and spec."""
    meta, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = meta.get("annotations") or {}
    found = label_problems(meta.get("labels") or {}, f"{field}.labels")
    found += annotation_problems(annotations, f"{field}.annotations")
    found += annotation_meanings_problems(annotations, spec, f"{field}.annotations")
    found += pod_spec_problems(spec, f"{field}.spec")
    found += profile_match_problems(annotations, spec, f"{field}.spec")
    if spec.get("ephemeralContainers"):
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden_field(f"{field}.spec.ephemeralContainers", detail))
    return found


def staying_template_problems(template: JsonObject, field: str, kind: str) -> list[FieldCause]:
    """Return the problems of a template of pods with the restart policy Always."""
    spec = template.get("spec") or {}
    found = template_problems(template, field)
    if spec.get("restartPolicy") != "Always":
        policy = spec.get("restartPolicy") or ""
        found.append(not_supported(f"{field}.spec.restartPolicy", policy, ["Always"]))
    if spec.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
        found.append(forbidden_field(f"{field}.spec.activeDeadlineSeconds", detail))
    return found


def mismatched_labels(
    selector: JsonObject | None, template: JsonObject, field: str
) -> list[FieldCause]:
    """Refuse a template whose labels do not match the selector."""
    labels = (template.get("metadata") or {}).get("labels")
    compiled = compile_selector(msgspec.convert(selector, LabelSelector | None))
    if compiled.matches(labels or {}):
        return []
    detail = "`selector` does not match template `labels`"
    shown = dict(sorted(labels.items())) if labels else None
    return [bad_value(f"{field}.metadata.labels", shown, detail)]


_DEPLOYMENT = ("updatedReplicas", "readyReplicas", "availableReplicas")
_REPLICA_SET = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
_STATEFUL_SET = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_DAEMON_SET = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def _counts(status: JsonObject, parts: Iterable[str], available_of: str) -> list[FieldCause]:
    """Require parts not to exceed the total, and available not to exceed ready."""
    replicas, found = status.get("replicas") or 0, []
    for name in parts:
        if (status.get(name) or 0) > replicas:
            detail = "cannot be greater than status.replicas"
            found.append(bad_value(f"status.{name}", status.get(name) or 0, detail))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        detail = f"cannot be greater than {available_of}"
        found.append(bad_value("status.availableReplicas", available, detail))
    return found


def _decremented(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    count = (new.get("status") or {}).get("collisionCount") or 0
    if count >= ((old.get("status") or {}).get("collisionCount") or 0):
        return []
    return [bad_value("status.collisionCount", count, "cannot be decremented")]


def deployment_status_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a Deployment's status."""
    status = new.get("status") or {}
    counts = ("observedGeneration", "replicas", *_DEPLOYMENT, "unavailableReplicas")
    found = negative(status, (*counts, "terminatingReplicas", "collisionCount"), "status")
    return found + _counts(status, _DEPLOYMENT, "readyReplicas") + _decremented(new, old)


def replica_set_status_problems(new: JsonObject, _old: JsonObject) -> list[FieldCause]:
    """Return the problems of a ReplicaSet's or a ReplicationController's status."""
    status = new.get("status") or {}
    counts = ("replicas", *_REPLICA_SET, "observedGeneration", "terminatingReplicas")
    return negative(status, counts, "status") + _counts(status, _REPLICA_SET, "readyReplicas")


def stateful_set_status_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a StatefulSet's status."""
    status = new.get("status") or {}
    counts = ("replicas", *_STATEFUL_SET, "observedGeneration", "collisionCount")
    found = negative(status, counts, "status")
    return found + _counts(status, _STATEFUL_SET, "status.readyReplicas") + _decremented(new, old)


def daemon_set_status_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a DaemonSet's status."""
    return negative(new.get("status") or {}, _DAEMON_SET, "status") + _decremented(new, old)
