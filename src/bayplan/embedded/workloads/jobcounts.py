"""Which of a Job's pods have ended, how the Job stands, and the conditions that say so.

A pod carries a finalizer until it is counted, so that it cannot be gone before. Counting is then
three writes, each of which may be the last before a crash: the pod's UID goes into the status among
the uncounted, the finalizer comes off the pod, and an uncounted UID whose pod has no finalizer any
more becomes part of the number. At every moment the number and the uncounted together say how
many have ended. Indexed jobs need no UIDs of what succeeded: the index says it.

A job that has reached its end says at once why (SuccessCriteriaMet, FailureTarget); it is Complete
or Failed only when none of its pods is left running and all of them are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Update
from bayplan.embedded.control.facts import PodFacts, moment
from bayplan.embedded.workloads.base import Condition, conditions_of

INDEX = "batch.kubernetes.io/job-completion-index"


def indexed(job: JsonObject) -> bool:
    """Whether each of a job's pods has an index."""
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: PodFacts) -> int:
    """A pod's index; -1 if it has none."""
    text = pod.annotation(INDEX)
    return int(text) if text.isdecimal() and len(text) < 10 else -1


def format_indexes(indexes: Iterable[int]) -> str:
    """Indexes in order; three or more in a row as the first and the last: `0,1,3-5`."""
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
    """The indexes of such a text; what cannot be read is left out."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), int(last or first) + 1))
    return found


TRACKING = "batch.kubernetes.io/job-tracking"
MOST_UNCOUNTED = 500
"""UIDs that are written into a status in one go."""

OwnPods = list[tuple[Key, PodFacts]]


@dataclass(frozen=True, slots=True)
class Tally:
    """What has ended, what to write about it, and whose finalizers may go then."""

    succeeded: int
    failed: int
    indexes: frozenset[int]
    status: JsonObject
    released: list[Key]
    newly_failed: int
    newly_succeeded: int

    @property
    def settled(self) -> bool:
        """Whether everything is part of the numbers and no pod waits to be counted."""
        return not self.released and not self.status["uncountedTerminatedPods"]


def tracked(pod: PodFacts) -> bool:
    """Whether a pod is still to be counted."""
    return TRACKING in (pod.metadata.finalizers or ())


def untrack(key: Key) -> Update:
    """Take the finalizer off a pod."""
    return Update(key, _untracked)


def _untracked(pod: JsonObject) -> JsonObject:
    meta = pod["metadata"]
    left = [name for name in meta.pop("finalizers", None) or () if name != TRACKING]
    if left:
        meta["finalizers"] = left
    return pod


def terminating(pod: PodFacts) -> bool:
    """Whether a pod was asked to go and has not ended yet."""
    return pod.deleting and not pod.terminal


def only_failed(job: JsonObject) -> bool:
    """Whether a pod that was asked to go is replaced only once it has ended."""
    return bool(job["spec"].get("podReplacementPolicy") == "Failed")


def tally(job: JsonObject, pods: OwnPods, *, lost: bool = False) -> Tally:
    """Count; of a job that is lost, every pod that has not succeeded has failed."""
    count = _Count(job, {pod.uid for _, pod in pods if tracked(pod)})
    for key, pod in pods:
        if len(count.fresh) >= MOST_UNCOUNTED:
            break
        if tracked(pod):
            count.add(key, pod, lost=lost)
    return count.result()


class _Count:
    """A tally in the making."""

    def __init__(self, job: JsonObject, held: set[str]) -> None:
        self._job = job
        status = job.get("status") or {}
        uncounted = status.get("uncountedTerminatedPods") or {}
        self._done, self._well = _fold(status, uncounted, "succeeded", held)
        self._lost, self._bad = _fold(status, uncounted, "failed", held)
        self._most = (job["spec"].get("completions") or 0) if indexed(job) else None
        found = parse_indexes(status.get("completedIndexes") or "")
        self._indexes = {one for one in found if self._most is None or one < self._most}
        self._released: list[Key] = []
        self._newly_failed = 0
        self.fresh: list[str] = []
        """UIDs of pods that were not counted before."""

    def add(self, key: Key, pod: PodFacts, *, lost: bool) -> None:
        """Count a pod, if it has ended."""
        if pod.uid in self._bad:
            pass  # it failed when it was asked to go, however it ended after that
        elif pod.phase == "Succeeded":
            self._succeed(pod)
        elif lost or _failed(self._job, pod):
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

    def result(self) -> Tally:
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
        return Tally(
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
    """The number of an outcome, and its UIDs that are not part of it yet."""
    uids = list(uncounted.get(outcome) or ())
    kept = [uid for uid in uids if uid in held]
    return (status.get(outcome) or 0) + len(uids) - len(kept), kept


def _failed(job: JsonObject, pod: PodFacts) -> bool:
    """A pod that was asked to go may never be heard of again, so it has failed already."""
    return pod.phase == "Failed" or (terminating(pod) and not only_failed(job))


SUCCESS, FAILURE = "SuccessCriteriaMet", "FailureTarget"
REACHED = Condition(
    SUCCESS, "True", "CompletionsReached", "Reached expected number of succeeded pods"
)
EXCEEDED = Condition(
    FAILURE, "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
)
LATE = Condition(
    FAILURE, "True", "DeadlineExceeded", "Job was active longer than specified deadline"
)
_ENDS = {SUCCESS: "Complete", FAILURE: "Failed"}


def finished(job: JsonObject) -> JsonObject:
    """The condition that says that a job has ended; empty if it has not."""
    return _holding(job, "Complete") or _holding(job, "Failed")


def verdict(job: JsonObject, ended: Tally, active: int, now: float) -> Condition | None:
    """What ends the job, if anything does; what once did does so for good."""
    decided = _holding(job, SUCCESS) or _holding(job, FAILURE)
    if decided:
        said = decided.get("reason") or "", decided.get("message") or ""
        return Condition(decided["type"], "True", *said)
    spec = job["spec"]
    if ended.failed > spec.get("backoffLimit", 6):
        return EXCEEDED
    due = deadline(job)
    if due is not None and now >= due:
        return LATE
    enough = spec.get("completions")
    reached = ended.succeeded > 0 if enough is None else ended.succeeded >= enough
    return REACHED if reached and not active else None


def terminal(decided: Condition) -> Condition:
    """The condition under which a job whose end is decided has ended."""
    return decided._replace(type=_ENDS[decided.type])


def deadline(job: JsonObject) -> float | None:
    """When the job has run for too long; suspended ones do not run."""
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
