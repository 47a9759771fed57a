"""Jobs: pods until enough have succeeded, or too many have failed.

What has ended is counted first (see `jobtally`) and written before any finalizer goes; then pods
are made or deleted. A job ends in two steps (see `jobstatus`), and goes after its time to live.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Delete, Plan, RequeueAfter, Stage, Tell
from bayplan.embedded.control.facts import moment
from bayplan.embedded.control.storages import JOBS, PODS
from bayplan.embedded.workloads import jobpods
from bayplan.embedded.workloads.base import Workload
from bayplan.embedded.workloads.jobbackoff import Backoff
from bayplan.embedded.workloads.jobstatus import FAILURE, deadline, finished, terminal, verdict
from bayplan.embedded.workloads.jobtally import OwnPods, Tally, tally, terminating, untrack
from bayplan.embedded.workloads.template import (
    Condition,
    conditions_of,
    status_change,
    with_condition,
)

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
        unwanted = jobpods.surplus(owner, active, ended)
        pause = self._backoff.left(key, self._stage.seconds())
        made = [] if unwanted or pause else jobpods.missing(owner, pods, ended)
        change = jobpods.remove(unwanted) + jobpods.make(made)
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
