"""How many pods a Job should have now, and which to make or to take away."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.controller import Create, Delete, Plan
from bayplan.embedded.control.storages import PODS
from bayplan.embedded.workloads.jobindexes import INDEX, index_of, indexed
from bayplan.embedded.workloads.jobtally import (
    TRACKING,
    OwnPods,
    Tally,
    only_failed,
    terminating,
    tracked,
    untrack,
)
from bayplan.embedded.workloads.replicasets import usefulness
from bayplan.embedded.workloads.template import generate_name, pod_from

BURST = 500
"""Pods made or deleted in one go; the rest follows at once, after others had their turn."""


def surplus(job: JsonObject, active: OwnPods, ended: Tally) -> OwnPods:
    """The active pods that a job does not want, those of an index that another has first."""
    twice = _twice(active) if indexed(job) else []
    others = [one for one in active if one not in twice]
    more = max(0, len(active) - wanted(job, len(active), ended) - len(twice))
    return (twice + sorted(others, key=usefulness)[:more])[:BURST]


def _twice(active: OwnPods) -> OwnPods:
    seen: set[int] = set()
    found = []
    for one in sorted(active, key=usefulness, reverse=True):
        index = index_of(one[1])
        if index in seen or index < 0:
            found.append(one)
        seen.add(index)
    return found


def wanted(job: JsonObject, active: int, ended: Tally) -> int:
    """How many pods should be active now."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    parallelism: int = spec.get("parallelism", 1)
    enough: int | None = spec.get("completions")
    if enough is None:
        # The pods share a queue of work: once one has succeeded, the others just end.
        return active if ended.succeeded else parallelism
    return max(0, min(parallelism, enough - ended.succeeded))


def missing(job: JsonObject, pods: OwnPods, ended: Tally) -> list[JsonObject]:
    """The pods to make."""
    active = [pod for _, pod in pods if pod.active]
    going = [pod for _, pod in pods if terminating(pod)] if only_failed(job) else []
    count = min(BURST, wanted(job, len(active), ended) - len(active) - len(going))
    if not indexed(job):
        return [_pod(job, None) for _ in range(count)]
    taken = ended.indexes.union(index_of(pod) for pod in (*active, *going))
    free = (one for one in range(job["spec"].get("completions") or 0) if one not in taken)
    return [_pod(job, index) for index, _ in zip(free, range(count), strict=False)]


def _pod(job: JsonObject, index: int | None) -> JsonObject:
    name = generate_name(job)
    pod = pod_from(job, generateName=name if index is None else f"{name}{index}-")
    meta = pod["metadata"]
    meta["finalizers"] = [*(meta.get("finalizers") or ()), TRACKING]
    if index is not None:
        for field in ("labels", "annotations"):
            meta[field] = {**(meta.get(field) or {}), INDEX: str(index)}
    return pod


def make(pods: list[JsonObject]) -> Plan:
    """Create pods."""
    return [Create(PODS, pod) for pod in pods]


def remove(pods: OwnPods) -> Plan:
    """Delete pods that the job itself does not want: that they go is no failure of theirs."""
    plan: Plan = []
    for key, pod in pods:
        if tracked(pod):
            plan.append(untrack(key))
        plan.append(Delete(key, pod.uid))
    return plan
