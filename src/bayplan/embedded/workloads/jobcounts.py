"""Counting of a Job's terminated pods, and the Job's conditions.

A pod has a tracking finalizer until it is counted, so that it is not removed before. Counting takes
three writes, each of which may be the last before a crash: the pod's UID is added to the uncounted
ones in the status, the finalizer is removed from the pod, and an uncounted UID without a finalizer
is added to the number. At every time number and uncounted UIDs together are the terminated pods.
Indexed jobs need no UIDs of succeeded pods: the index identifies them.

A job that has reached its end gets SuccessCriteriaMet or FailureTarget at once; it is Complete or
Failed only when none of its pods runs and all of them are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import Update
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.workloads.base import ConditionUpdate, conditions_of

INDEX = "batch.kubernetes.io/job-completion-index"


def is_indexed(job: JsonObject) -> bool:
    """Return whether a job is Indexed."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: PodFacts) -> int:
    """Return a pod's index; -1 if it has none."""
    text = pod.annotation(INDEX)
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def format_indexes(indexes: Iterable[int]) -> str:
    """Return indexes as text, three or more in a row as a range: `0,1,3-5`."""
    runs: list[list[int]] = []
    for one in sorted(indexes):
        if runs and runs[-1][-1] == one - 1:
            runs[-1].append(one)
        else:
            runs.append([one])
    return ",".join(_run(one) for one in runs)


def _run(run: list[int]) -> str:
    return f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run))


def parse_indexes(text: str) -> set[int]:
    """Parse indexes; invalid parts are skipped."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found


TRACKING = "batch.kubernetes.io/job-tracking"
MAX_UNCOUNTED = 500
"""UIDs that are added to a status in one write."""

OwnPods = list[tuple[ObjectKey, PodFacts]]


@dataclass(frozen=True, slots=True)
class JobPodCounts:
    """The terminated pods of a job, the status to write, and the finalizers to remove."""

    succeeded: int
    failed: int
    indexes: frozenset[int]
    status: JsonObject
    released: list[ObjectKey]
    newly_failed: int
    newly_succeeded: int

    @property
    def is_settled(self) -> bool:
        """Whether all pods are part of the numbers."""
        return not self.released and not self.status["uncountedTerminatedPods"]


def is_tracked(pod: PodFacts) -> bool:
    """Return whether a pod still has the tracking finalizer."""
    return TRACKING in (pod.metadata.finalizers or ())


def untrack(key: ObjectKey) -> Update:
    """Remove the finalizer of a pod."""
    return Update(key, _untracked)


def _untracked(pod: JsonObject) -> JsonObject:
    meta = pod["metadata"]
    left = [name for name in meta.pop("finalizers", None) or () if name != TRACKING]
    if left:
        meta["finalizers"] = left
    return pod


def is_terminating(pod: PodFacts) -> bool:
    """Return whether a pod is terminating and has not ended yet."""
    return pod.is_terminating and not pod.is_terminal


def replaces_only_failed(job: JsonObject) -> bool:
    """Return whether a terminating pod is replaced only once it has ended."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def count_pods(job: JsonObject, pods: OwnPods, *, lost: bool = False) -> JobPodCounts:
    """Count the pods; of a `lost` job, every pod that has not succeeded has failed."""
    count = _Count(job, {pod.uid for _, pod in pods if is_tracked(pod)})
    for key, pod in pods:
        if len(count.fresh) >= MAX_UNCOUNTED:
            break
        if is_tracked(pod):
            count.add(key, pod, lost=lost)
    return count.result()


class _Count:
    """The counts while they are computed."""

    def __init__(self, job: JsonObject, held: set[str]) -> None:
        self._job = job
        status = job.get("status") or {}
        uncounted = status.get("uncountedTerminatedPods") or {}
        self._done, self._well = _fold(status, uncounted, "succeeded", held)
        self._lost, self._bad = _fold(status, uncounted, "failed", held)
        self._most = (job["spec"].get("completions") or 0) if is_indexed(job) else None
        found = parse_indexes(status.get("completedIndexes") or "")
        self._indexes = {one for one in found if self._most is None or one < self._most}
        self._released: list[ObjectKey] = []
        self._newly_failed = 0
        self.fresh: list[str] = []
        """UIDs of pods that were not counted before."""

    def add(self, key: ObjectKey, pod: PodFacts, *, lost: bool) -> None:
        """Count a pod, if it has terminated."""
        if pod.uid in self._bad:
            pass  # it failed when it was deleted, however it ended after that
        elif pod.phase == "Succeeded":
            self._succeed(pod)
        elif lost or _has_failed(self._job, pod):
            self._fail(pod)
        else:
            return
        self._released.append(key)

    def _succeed(self, pod: PodFacts) -> None:
        if self._most is None:
            self._note(self._well, pod)
            return
        index = index_of(pod)
        if 0 <= index < self._most and index not in self._indexes:
            self._indexes.add(index)
            self.fresh.append(pod.uid)

    def _fail(self, pod: PodFacts) -> None:
        if self._most is None or 0 <= index_of(pod) < self._most:
            self._newly_failed += self._note(self._bad, pod)

    def _note(self, uids: list[str], pod: PodFacts) -> bool:
        if pod.uid in uids:
            return False
        uids.append(pod.uid)
        self.fresh.append(pod.uid)
        return True

    def result(self) -> JobPodCounts:
        done, lost = self._done + len(self._well), self._lost + len(self._bad)
        uncounted = {"succeeded": self._well, "failed": self._bad}
        status: JsonObject = {
            "succeeded": self._done,
            "failed": self._lost,
            "uncountedTerminatedPods": {name: uids for name, uids in uncounted.items() if uids},
        }
        if self._most is not None:
            done = status["succeeded"] = len(self._indexes)
            status["completedIndexes"] = format_indexes(self._indexes)
        return JobPodCounts(
            succeeded=done,
            failed=lost,
            indexes=frozenset(self._indexes),
            status=status,
            released=self._released,
            newly_failed=self._newly_failed,
            newly_succeeded=len(self.fresh) - self._newly_failed,
        )


def _fold(
    status: JsonObject, uncounted: JsonObject, outcome: str, held: Iterable[str]
) -> tuple[int, list[str]]:
    """Return the number of an outcome, and its UIDs that are not part of it yet."""
    uids = list(uncounted.get(outcome) or ())
    kept = [uid for uid in uids if uid in held]
    return (status.get(outcome) or 0) + len(uids) - len(kept), kept


def _has_failed(job: JsonObject, pod: PodFacts) -> bool:
    """Return whether a pod has failed; a deleted one counts, since its end may never be seen."""
    return pod.phase == "Failed" or (is_terminating(pod) and not replaces_only_failed(job))


SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"
REACHED = ConditionUpdate(
    SUCCESS, "True", "CompletionsReached", "Reached expected number of succeeded pods"
)
EXCEEDED = ConditionUpdate(
    FAILURE, "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
)
LATE = ConditionUpdate(
    FAILURE, "True", "DeadlineExceeded", "Job was active longer than specified deadline"
)
_ENDS = {SUCCESS: "Complete", FAILURE: "Failed"}


def finished(job: JsonObject) -> JsonObject:
    """Return the condition type with which a job has ended; empty if it has not."""
    return _holding(job, "Complete") or _holding(job, "Failed")


def end_condition(
    job: JsonObject, ended: JobPodCounts, active: int, now: float
) -> ConditionUpdate | None:
    """Return the condition that ends the job, or None; it is permanent once set."""
    decided = _holding(job, SUCCESS) or _holding(job, FAILURE)
    if decided:
        texts = decided.get("reason") or "", decided.get("message") or ""
        return ConditionUpdate(decided["type"], "True", *texts)
    spec = job["spec"]
    if ended.failed > spec.get("backoffLimit", 6):
        return EXCEEDED
    due = deadline(job)
    if due is not None and now >= due:
        return LATE
    enough = spec.get("completions")
    reached = ended.succeeded > 0 if enough is None else ended.succeeded >= enough
    return REACHED if reached and not active else None


def terminal(decided: ConditionUpdate) -> ConditionUpdate:
    """Return the final condition of a job whose end is decided."""
    return decided._replace(type=_ENDS[decided.type])


def deadline(job: JsonObject) -> float | None:
    """Return when the job exceeds its deadline; None for suspended ones."""
    started = (job.get("status") or {}).get("startTime")
    limit = job["spec"].get("activeDeadlineSeconds")
    if limit is None or not started or job["spec"].get("suspend"):
        return None
    return moment(started) + float(limit)


def _holding(job: JsonObject, type_: str) -> JsonObject:
    for one in conditions_of(job):
        if one["type"] == type_ and one["status"] == "True":
            return one
    return {}
