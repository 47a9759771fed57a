"""Jobs: pods until enough have succeeded, or too many have failed.

A job may be deleted, or end, while pods still carry its finalizer: they could never go.

What has ended is counted first (see `jobtally`) and written before any finalizer goes; then pods
are made or deleted. A job ends in two steps (see `jobstatus`), and goes after its time to live.
"""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.base.pacing import doubled
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.watchcache import Change
from bayplan.embedded.control.controller import (
    Controller,
    Create,
    Delete,
    Plan,
    RequeueAfter,
    Stage,
    Tell,
)
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.view import JOBS, PODS
from bayplan.embedded.workloads.base import (
    Condition,
    Workload,
    conditions_of,
    generate_name,
    pod_from,
    status_change,
    with_condition,
)
from bayplan.embedded.workloads.deployments import usefulness
from bayplan.embedded.workloads.jobcounts import (
    FAILURE,
    INDEX,
    TRACKING,
    OwnPods,
    Tally,
    deadline,
    finished,
    index_of,
    indexed,
    only_failed,
    tally,
    terminal,
    terminating,
    tracked,
    untrack,
    verdict,
)

FIRST_SECONDS = 10.0
MOST_SECONDS = 600.0


class Backoff:
    """Failures since the last success, by job; a new process begins anew."""

    def __init__(self) -> None:
        self._failures: dict[Key, tuple[int, float]] = {}

    def note(self, key: Key, ended: Tally, now: float) -> None:
        """Pods of a job have ended."""
        if ended.newly_succeeded:
            self.forget(key)
        if ended.newly_failed:
            count = self._failures.get(key, (0, 0.0))[0] + ended.newly_failed
            self._failures[key] = (count, now)

    def left(self, key: Key, now: float) -> float:
        """Seconds until the job may make pods again."""
        count, last = self._failures.get(key, (0, 0.0))
        if not count:
            return 0.0
        pause = doubled(FIRST_SECONDS, MOST_SECONDS, count - 1)
        return max(0.0, last + pause - now)

    def forget(self, key: Key) -> None:
        """The job has ended, is gone, or one of its pods has succeeded."""
        self._failures.pop(key, None)


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


class JobOrphans(Controller[Key]):
    """Keyed by pod."""

    name = "job-orphans"
    storages = (JOBS, PODS)

    def __init__(self, stage: Stage) -> None:
        self._view = stage.view

    def notice(self, change: Change) -> Iterable[Key]:
        """A pod that nobody will count; all pods of a job that ends, or goes."""
        entry = change.entry
        if entry.key.storage == JOBS:
            gone = change.deleted or not self._counts(entry.uid)
            return [key for key, _ in self._view.pods_of(entry.uid)] if gone else ()
        pod = None if change.deleted else self._view.pods.get(entry.key)
        return (entry.key,) if pod is not None and self._orphaned(pod) else ()

    def decide(self, key: Key) -> Plan:
        """Let the pod go."""
        pod = self._view.pods.get(key)
        return [untrack(key)] if pod is not None and self._orphaned(pod) else []

    def _orphaned(self, pod: PodFacts) -> bool:
        if not tracked(pod):
            return False
        return pod.controller is None or not self._counts(pod.controller.uid)

    def _counts(self, uid: str) -> bool:
        """Whether there is a job that still counts its pods."""
        entry = self._view.store.by_uid(uid)
        if entry is None or entry.key.storage != JOBS or entry.deleting:
            return False
        job = self._view.object(entry.key)
        return job is not None and not finished(job)


SUSPENDED = Condition("Suspended", "True", "JobSuspended", "Job suspended")
RESUMED = Condition("Suspended", "False", "JobResumed", "Job resumed")


class Jobs(Workload):
    """Keyed by Job."""

    name = "job-controller"
    storage = JOBS
    storages = (JOBS, PODS)

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._backoff = Backoff()

    def reconcile(self, key: Key, owner: JsonObject) -> Plan:
        """Count the pods that ended, make or delete others, and say when the job is done."""
        if finished(owner):
            self._backoff.forget(key)
            return self._expire(key, owner)
        pods, now = self.pods(owner), self._stage.seconds()
        active = [one for one in pods if one[1].active]
        ended = tally(owner, pods)
        decided = verdict(owner, ended, len(active), now)
        if decided is not None and decided.type == FAILURE:
            ended = tally(owner, pods, lost=True)
        self._backoff.note(key, ended, now)
        if decided is not None:
            return self._end(key, owner, pods, ended, decided)
        return self._go_on(key, owner, pods, ended)

    def let_go(self, key: Key) -> Plan:
        """Its pods are let go by `JobOrphans`."""
        self._backoff.forget(key)
        return []

    def _go_on(self, key: Key, owner: JsonObject, pods: OwnPods, ended: Tally) -> Plan:
        active = [one for one in pods if one[1].active]
        unwanted = surplus(owner, active, ended)
        pause = self._backoff.left(key, self._stage.seconds())
        made = [] if unwanted or pause else missing(owner, pods, ended)
        change = remove(unwanted) + make(made)
        status = self._status(owner, pods, ended)
        counted = [untrack(one) for one in ended.released]
        if counted:
            # Nothing is forgotten if the server refuses to make a pod.
            plan: Plan = [*status_change(key, owner, status), *counted, *change]
        else:
            status["active"] += len(made) - len(unwanted)
            plan = [*change, *status_change(key, owner, status)]
        waits = [pause] if pause else []
        return plan + self._later(owner, status, waits)

    def _end(
        self, key: Key, owner: JsonObject, pods: OwnPods, ended: Tally, decided: Condition
    ) -> Plan:
        """Let every pod end and be counted; then the job has ended."""
        now = self._stage.now()
        status = self._status(owner, pods, ended)
        conditions = with_condition(status["conditions"], decided, now)
        going: Plan = [Delete(one, pod.uid) for one, pod in pods if pod.active]
        told: Plan = []
        if ended.settled and not going and not status["terminating"]:
            last = terminal(decided)
            conditions = [*with_condition([], last, now), *conditions]
            told = [_announcement(key, last)]
            if last.type == "Complete":
                status["completionTime"] = now
        status |= {"conditions": conditions, "active": 0, "ready": 0}
        counted = [untrack(one) for one in ended.released]
        return [*status_change(key, owner, status), *counted, *going, *told]

    def _status(self, owner: JsonObject, pods: OwnPods, ended: Tally) -> JsonObject:
        active = [pod for _, pod in pods if pod.active]
        conditions = conditions_of(owner)
        status: JsonObject = {
            "active": len(active),
            "ready": sum(pod.ready for pod in active),
            "terminating": sum(terminating(pod) for _, pod in pods),
            "conditions": conditions,
            **ended.status,
        }
        started = (owner.get("status") or {}).get("startTime")
        now = self._stage.now()
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
        """Ask again when pods may be made, or when the job has run for too long."""
        due = deadline({**owner, "status": {**(owner.get("status") or {}), **status}})
        if due is not None:
            waits.append(due - self._stage.seconds())
        return [RequeueAfter(max(0.1, min(waits)))] if waits else []

    def _expire(self, key: Key, owner: JsonObject) -> Plan:
        """A finished job goes after its time to live, and its pods with it."""
        keep = owner["spec"].get("ttlSecondsAfterFinished")
        if keep is None:
            return []
        ended = moment(finished(owner)["lastTransitionTime"])
        left = ended + keep - self._stage.seconds()
        return [RequeueAfter(left)] if left > 0 else [Delete(key, owner["metadata"]["uid"])]


def _announcement(key: Key, last: Condition) -> Tell:
    if last.type == "Complete":
        return Tell(key, "Completed", "Job completed", source=Jobs.name)
    return Tell(key, last.reason, last.message, "Warning", Jobs.name)
