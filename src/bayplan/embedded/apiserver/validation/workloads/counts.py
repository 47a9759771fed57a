"""What is wrong with the status of a workload: how many pods it has, and in which state."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value
from bayplan.embedded.apiserver.validation.numbers import negative

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


def _counts(status: JsonObject, parts: Iterable[str], available_of: str) -> list[Cause]:
    """No part can be more than the whole, and what is available must be ready."""
    replicas, found = status.get("replicas") or 0, []
    for name in parts:
        if (status.get(name) or 0) > replicas:
            why = "cannot be greater than status.replicas"
            found.append(bad_value(f"status.{name}", status.get(name) or 0, why))
    available = status.get("availableReplicas") or 0
    if available > (status.get("readyReplicas") or 0):
        why = f"cannot be greater than {available_of}"
        found.append(bad_value("status.availableReplicas", available, why))
    return found


def _decremented(new: JsonObject, old: JsonObject) -> list[Cause]:
    count = (new.get("status") or {}).get("collisionCount") or 0
    if count >= ((old.get("status") or {}).get("collisionCount") or 0):
        return []
    return [bad_value("status.collisionCount", count, "cannot be decremented")]


def deployment_status_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with a Deployment's status."""
    status = new.get("status") or {}
    counts = ("observedGeneration", "replicas", *_DEPLOYMENT, "unavailableReplicas")
    found = negative(status, (*counts, "terminatingReplicas", "collisionCount"), "status")
    return found + _counts(status, _DEPLOYMENT, "readyReplicas") + _decremented(new, old)


def replica_set_status_problems(new: JsonObject, _old: JsonObject) -> list[Cause]:
    """What is wrong with a ReplicaSet's or a ReplicationController's status."""
    status = new.get("status") or {}
    counts = ("replicas", *_REPLICA_SET, "observedGeneration", "terminatingReplicas")
    return negative(status, counts, "status") + _counts(status, _REPLICA_SET, "readyReplicas")


def stateful_set_status_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with a StatefulSet's status."""
    status = new.get("status") or {}
    counts = ("replicas", *_STATEFUL_SET, "observedGeneration", "collisionCount")
    found = negative(status, counts, "status")
    return found + _counts(status, _STATEFUL_SET, "status.readyReplicas") + _decremented(new, old)


def daemon_set_status_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with a DaemonSet's status."""
    return negative(new.get("status") or {}, _DAEMON_SET, "status") + _decremented(new, old)
