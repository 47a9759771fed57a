"""Jobs: pods until enough have succeeded, or too many have failed."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.control.steps import Again, Create, Delete, Plan, Tell
from bayplan.embedded.control.storages import JOBS, PODS
from bayplan.embedded.workloads.base import Workload
from bayplan.embedded.workloads.template import (
    Condition,
    conditions_of,
    generate_name,
    pod_from,
    status_change,
    with_condition,
)

INDEX = "batch.kubernetes.io/job-completion-index"
BURST = 500
COMPLETE = Condition(
    "Complete", "True", "CompletionsReached", "Reached expected number of succeeded pods"
)


class Jobs(Workload):
    """Keyed by Job."""

    name = "job-controller"
    storage = JOBS
    storages = (JOBS, PODS)

    def reconcile(self, key: Key, owner: JsonObject) -> Plan:
        """Start pods, count those that ended, and say when the job is done."""
        if _finished(owner):
            return self._expire(key, owner)
        pods = self.pods(owner)
        done = [pod for _, pod in pods if pod.phase == "Succeeded"]
        failed = [pod for _, pod in pods if pod.phase == "Failed"]
        active = [(one, pod) for one, pod in pods if pod.active]
        verdict = self._verdict(owner, done, failed)
        if verdict or owner["spec"].get("suspend"):
            plan: Plan = [Delete(one, pod.uid) for one, pod in active]
        else:
            plan = self._start(owner, done, active)
        return plan + self._count(key, owner, (len(active), len(done), len(failed)), verdict)

    def _verdict(self, owner: JsonObject, done: list[PodFacts], failed: list[PodFacts]) -> str:
        spec = owner["spec"]
        if len(failed) > spec.get("backoffLimit", 6):
            return "BackoffLimitExceeded"
        started = (owner.get("status") or {}).get("startTime")
        limit = spec.get("activeDeadlineSeconds")
        if limit and started and self._stage.seconds() >= moment(started) + limit:
            return "DeadlineExceeded"
        enough = spec.get("completions")
        if enough is None:
            return "Complete" if done else ""
        if _indexed(owner):
            return "Complete" if len({_index(pod) for pod in done}) >= enough else ""
        return "Complete" if len(done) >= enough else ""

    def _start(
        self, owner: JsonObject, done: list[PodFacts], active: list[tuple[Key, PodFacts]]
    ) -> Plan:
        spec = owner["spec"]
        parallelism = spec.get("parallelism", 1)
        enough = spec.get("completions")
        wanted = parallelism if enough is None else min(parallelism, enough - len(done))
        if enough is None and done:
            wanted = 0
        missing = wanted - len(active)
        if missing < 0:
            return [Delete(one, pod.uid) for one, pod in active[missing:]]
        taken = {_index(pod) for pod in (*done, *(pod for _, pod in active))}
        return self._make(owner, min(missing, BURST), taken)

    def _make(self, owner: JsonObject, count: int, taken: set[int]) -> Plan:
        plan: Plan = []
        if not _indexed(owner):
            name = {"generateName": generate_name(owner)}
            return [Create(PODS, pod_from(owner, **name)) for _ in range(count)]
        free = (number for number in range(owner["spec"]["completions"]) if number not in taken)
        for _, number in zip(range(count), free, strict=False):
            pod = pod_from(owner, generateName=f"{generate_name(owner)}{number}-")
            meta = pod["metadata"]
            for field in ("labels", "annotations"):
                meta[field] = {**(meta.get(field) or {}), INDEX: str(number)}
            plan.append(Create(PODS, pod))
        return plan

    def _count(
        self, key: Key, owner: JsonObject, counts: tuple[int, int, int], verdict: str
    ) -> Plan:
        active, succeeded, failed = counts
        now, status = self._stage.now(), owner.get("status") or {}
        wanted: JsonObject = {
            "active": 0 if verdict else active,
            "succeeded": succeeded,
            "failed": failed,
            "ready": sum(pod.ready for _, pod in self.pods(owner)),
            "startTime": status.get("startTime") or now,
        }
        plan: Plan = []
        if verdict == "Complete":
            wanted["completionTime"] = now
            wanted["conditions"] = with_condition(conditions_of(owner), COMPLETE, now)
            plan.append(Tell(key, "Completed", "Job completed", source=self.name))
        elif verdict:
            said = f"Job has failed: {verdict}"
            lost = Condition("Failed", "True", verdict, said)
            wanted["conditions"] = with_condition(conditions_of(owner), lost, now)
            plan.append(Tell(key, verdict, said, "Warning", self.name))
        return [*status_change(key, owner, wanted), *plan, *self._deadline(owner, wanted)]

    def _deadline(self, owner: JsonObject, status: JsonObject) -> Plan:
        limit = owner["spec"].get("activeDeadlineSeconds")
        if not limit or "conditions" in status:
            return []
        left = moment(status["startTime"]) + limit - self._stage.seconds()
        return [Again(max(0.1, left))]

    def _expire(self, key: Key, owner: JsonObject) -> Plan:
        """A finished job goes after its time to live, and its pods with it."""
        keep = owner["spec"].get("ttlSecondsAfterFinished")
        if keep is None:
            return []
        ended = moment(_finished(owner)["lastTransitionTime"])
        left = ended + keep - self._stage.seconds()
        return [Again(left)] if left > 0 else [Delete(key, owner["metadata"]["uid"])]


def _finished(owner: JsonObject) -> JsonObject:
    for one in (owner.get("status") or {}).get("conditions") or ():
        if one["type"] in ("Complete", "Failed") and one["status"] == "True":
            found: JsonObject = one
            return found
    return {}


def _indexed(owner: JsonObject) -> bool:
    return bool(owner["spec"].get("completionMode") == "Indexed")


def _index(pod: PodFacts) -> int:
    text = pod.annotation(INDEX)
    return int(text) if text.isdigit() else -1
