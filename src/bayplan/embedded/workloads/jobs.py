"""Jobs: create pods until enough have succeeded, or too many have failed.

Terminated pods are counted first (see `jobcounts`) and written before any finalizer is removed;
then pods are created or deleted. A job ends in two steps, and is deleted after its TTL.

`JobOrphans` removes the finalizers of pods whose job is deleted or has ended.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.base.flowcontrol import exponential_delay
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.apiserver.store.watchcache import WatchCacheEvent
from bayplan.embedded.control.controller import (
    Controller,
    ControllerContext,
    Create,
    Delete,
    Plan,
    RecordEvent,
    RequeueAfter,
)
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.view import JOBS, PODS
from bayplan.embedded.workloads.base import (
    ConditionUpdate,
    WorkloadController,
    conditions_of,
    generate_name,
    pod_from,
    status_change,
    with_condition,
)
from bayplan.embedded.workloads.deployments import deletion_order
from bayplan.embedded.workloads.jobcounts import (
    FAILURE,
    INDEX,
    TRACKING,
    JobPodCounts,
    OwnPods,
    count_pods,
    deadline,
    end_condition,
    finished,
    index_of,
    is_indexed,
    is_terminating,
    is_tracked,
    replaces_only_failed,
    terminal,
    untrack,
)

FIRST_SECONDS = 10.0
MAX_SECONDS = 600.0


class JobBackoff:
    """Failures since the last success, by job; not persistent."""

    def __init__(self) -> None:
        self._failures: dict[ObjectKey, tuple[int, float]] = {}

    def note(self, key: ObjectKey, ended: JobPodCounts, now: float) -> None:
        """Record terminated pods of a job."""
        if ended.newly_succeeded:
            self.forget(key)
        if ended.newly_failed:
            count = self._failures.get(key, (0, 0.0))[0] + ended.newly_failed
            self._failures[key] = (count, now)

    def left(self, key: ObjectKey, now: float) -> float:
        """Return the seconds until the job may create pods again."""
        count, last = self._failures.get(key, (0, 0.0))
        if not count:
            return 0.0
        pause = exponential_delay(FIRST_SECONDS, MAX_SECONDS, count - 1)
        return max(0.0, last + pause - now)

    def forget(self, key: ObjectKey) -> None:
        """Reset a job that has ended, is gone, or has a succeeded pod."""
        self._failures.pop(key, None)


BURST = 500
"""Pods created or deleted in one step; the rest follows after other keys."""


def surplus(job: JsonObject, active: OwnPods, ended: JobPodCounts) -> OwnPods:
    """Return the active pods that a job does not need, duplicates of an index first."""
    twice = _twice(active) if is_indexed(job) else []
    others = [one for one in active if one not in twice]
    more = max(0, len(active) - wanted(job, len(active), ended) - len(twice))
    return (twice + sorted(others, key=deletion_order)[:more])[:BURST]


def _twice(active: OwnPods) -> OwnPods:
    seen: set[int] = set()
    found = []
    for one in sorted(active, key=deletion_order, reverse=True):
        index = index_of(one[1])
        if index in seen or index < 0:
            found.append(one)
        seen.add(index)
    return found


def wanted(job: JsonObject, active: int, ended: JobPodCounts) -> int:
    """Return the wanted number of active pods."""
    spec = job["spec"]
    if spec.get("suspend"):
        return 0
    parallelism: int = spec.get("parallelism", 1)
    enough: int | None = spec.get("completions")
    if enough is None:
        # The pods share a work queue: once one has succeeded, no new ones are created.
        return active if ended.succeeded else parallelism
    return max(0, min(parallelism, enough - ended.succeeded))


def missing(job: JsonObject, pods: OwnPods, ended: JobPodCounts) -> list[JsonObject]:
    """Return the pods to create."""
    active = [pod for _, pod in pods if pod.is_active]
    going = [pod for _, pod in pods if is_terminating(pod)] if replaces_only_failed(job) else []
    count = min(BURST, wanted(job, len(active), ended) - len(active) - len(going))
    if not is_indexed(job):
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
    """Return the creation of pods."""
    return [Create(PODS, pod) for pod in pods]


def remove(pods: OwnPods) -> Plan:
    """Return the deletion of surplus pods, which does not count as failure."""
    plan: Plan = []
    for key, pod in pods:
        if is_tracked(pod):
            plan.append(untrack(key))
        plan.append(Delete(key, pod.uid))
    return plan


class JobOrphans(Controller[ObjectKey]):
    """Removes finalizers of pods without a job; keyed by pod."""

    name = "job-orphans"
    storages = (JOBS, PODS)

    def __init__(self, context: ControllerContext) -> None:
        self._view = context.view

    def notice(self, change: WatchCacheEvent) -> Iterable[ObjectKey]:
        """Return pods without a counting job, and all pods of a job that ends."""
        entry = change.entry
        if entry.key.storage == JOBS:
            gone = change.deleted or not self._is_counting(entry.uid)
            return [key for key, _ in self._view.pods_of(entry.uid)] if gone else ()
        pod = None if change.deleted else self._view.pods.get(entry.key)
        return (entry.key,) if pod is not None and self._is_orphaned(pod) else ()

    def decide(self, key: ObjectKey) -> Plan:
        """Remove the finalizer of the pod."""
        pod = self._view.pods.get(key)
        return [untrack(key)] if pod is not None and self._is_orphaned(pod) else []

    def _is_orphaned(self, pod: PodFacts) -> bool:
        if not is_tracked(pod):
            return False
        return pod.controller is None or not self._is_counting(pod.controller.uid)

    def _is_counting(self, uid: str) -> bool:
        """Return whether there is a job that still counts its pods."""
        entry = self._view.store.by_uid(uid)
        if entry is None or entry.key.storage != JOBS or entry.is_terminating:
            return False
        job = self._view.object(entry.key)
        return job is not None and not finished(job)


SUSPENDED = ConditionUpdate("Suspended", "True", "JobSuspended", "Job suspended")
RESUMED = ConditionUpdate("Suspended", "False", "JobResumed", "Job resumed")


class Jobs(WorkloadController):
    """The Job controller; keyed by Job."""

    name = "job-controller"
    storage = JOBS
    storages = (JOBS, PODS)

    def __init__(self, context: ControllerContext) -> None:
        super().__init__(context)
        self._backoff = JobBackoff()

    def reconcile(self, key: ObjectKey, owner: JsonObject) -> Plan:
        """Count the terminated pods, create or delete others, and set the end condition."""
        if finished(owner):
            self._backoff.forget(key)
            return self._expire(key, owner)
        pods, now = self.pods(owner), self._context.seconds()
        active = [one for one in pods if one[1].is_active]
        ended = count_pods(owner, pods)
        decided = end_condition(owner, ended, len(active), now)
        if decided is not None and decided.type == FAILURE:
            ended = count_pods(owner, pods, lost=True)
        self._backoff.note(key, ended, now)
        if decided is not None:
            return self._end(key, owner, pods, ended, decided)
        return self._go_on(key, owner, pods, ended)

    def on_deleted(self, key: ObjectKey) -> Plan:
        """Reset the backoff; `JobOrphans` removes the pods' finalizers."""
        self._backoff.forget(key)
        return []

    def _go_on(self, key: ObjectKey, owner: JsonObject, pods: OwnPods, ended: JobPodCounts) -> Plan:
        active = [one for one in pods if one[1].is_active]
        unwanted = surplus(owner, active, ended)
        pause = self._backoff.left(key, self._context.seconds())
        made = [] if unwanted or pause else missing(owner, pods, ended)
        change = remove(unwanted) + make(made)
        status = self._status(owner, pods, ended)
        counted = [untrack(one) for one in ended.released]
        if counted:
            # Failures are kept if the server refuses to create a pod.
            plan: Plan = [*status_change(key, owner, status), *counted, *change]
        else:
            status["active"] += len(made) - len(unwanted)
            plan = [*change, *status_change(key, owner, status)]
        waits = [pause] if pause else []
        return plan + self._later(owner, status, waits)

    def _end(
        self,
        key: ObjectKey,
        owner: JsonObject,
        pods: OwnPods,
        ended: JobPodCounts,
        decided: ConditionUpdate,
    ) -> Plan:
        """Delete and count all pods; then set the final condition."""
        now = self._context.now()
        status = self._status(owner, pods, ended)
        conditions = with_condition(status["conditions"], decided, now)
        going: Plan = [Delete(one, pod.uid) for one, pod in pods if pod.is_active]
        events: Plan = []
        if ended.is_settled and not going and not status["terminating"]:
            last = terminal(decided)
            conditions = [*with_condition([], last, now), *conditions]
            events = [_announcement(key, last)]
            if last.type == "Complete":
                status["completionTime"] = now
        status |= {"conditions": conditions, "active": 0, "ready": 0}
        counted = [untrack(one) for one in ended.released]
        return [*status_change(key, owner, status), *counted, *going, *events]

    def _status(self, owner: JsonObject, pods: OwnPods, ended: JobPodCounts) -> JsonObject:
        active = [pod for _, pod in pods if pod.is_active]
        conditions = conditions_of(owner)
        status: JsonObject = {
            "active": len(active),
            "ready": sum(pod.is_ready for pod in active),
            "terminating": sum(is_terminating(pod) for _, pod in pods),
            "conditions": conditions,
            **ended.status,
        }
        started = (owner.get("status") or {}).get("startTime")
        now = self._context.now()
        paused = any(one["type"] == "Suspended" and one["status"] == "True" for one in conditions)
        if owner["spec"].get("suspend"):
            status["conditions"] = with_condition(conditions, SUSPENDED, now)
        elif paused:
            status["conditions"] = with_condition(conditions, RESUMED, now)
            status["startTime"] = now
        elif not started:
            status["startTime"] = now
        return status

    def _later(self, owner: JsonObject, status: JsonObject, waits: list[float]) -> Plan:
        """Requeue for the backoff or the deadline."""
        due = deadline({**owner, "status": {**(owner.get("status") or {}), **status}})
        if due is not None:
            waits.append(due - self._context.seconds())
        return [RequeueAfter(max(0.1, min(waits)))] if waits else []

    def _expire(self, key: ObjectKey, owner: JsonObject) -> Plan:
        """Delete a finished job, with its pods, after its TTL."""
        keep = owner["spec"].get("ttlSecondsAfterFinished")
        if keep is None:
            return []
        ended = moment(finished(owner)["lastTransitionTime"])
        left = ended + keep - self._context.seconds()
        return [RequeueAfter(left)] if left > 0 else [Delete(key, owner["metadata"]["uid"])]


def _announcement(key: ObjectKey, last: ConditionUpdate) -> RecordEvent:
    if last.type == "Complete":
        return RecordEvent(key, "Completed", "Job completed", source=Jobs.name)
    return RecordEvent(key, last.reason, last.message, "Warning", Jobs.name)
