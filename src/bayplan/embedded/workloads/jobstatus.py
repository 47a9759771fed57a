"""How a Job stands: what ends it, and the conditions that say so.

A job that has reached its end says at once why (SuccessCriteriaMet, FailureTarget); it is Complete
or Failed only when none of its pods is left running and all of them are counted.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.facts import moment
from bayplan.embedded.workloads.jobtally import Tally
from bayplan.embedded.workloads.template import Condition, conditions_of

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
