"""Validation of changes of a Job's spec and status.

A status has the indexes of terminated pods, written as `1,3-5,7`.

A status must not take back earlier progress. A rule is applied only when its fields change, so that
an old problem does not block new progress.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    OMITTED,
    bad_value,
    duplicate,
    immutable,
    required,
)
from bayplan.embedded.apiserver.validation.numbers import negative


class IndexesError(ValueError):
    """Why a string is no list of indexes."""


def count_indexes(text: str, completions: int) -> int:
    """Return the number of indexes in a string; IndexesError if it is invalid."""
    total, last = 0, None
    for first, end in _intervals(text, completions):
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def overlap(one: str, other: str, completions: int) -> int | None:
    """Return the first index that is in both strings, or None; invalid parts are skipped."""
    left = sorted(_readable(one, completions))
    right = sorted(_readable(other, completions))
    at = 0
    for first, end in left:
        while at < len(right) and right[at][1] < first:
            at += 1
        if at < len(right) and right[at][0] <= end:
            return max(first, right[at][0])
    return None


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    return (_interval(part, completions) for part in text.split(",")) if text else iter(())


def _readable(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        try:
            yield _interval(part, completions)
        except IndexesError:
            continue


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise IndexesError(
            f'the fragment "{text}" violates the requirement that an index interval can have at '
            "most two parts separated by '-'"
        )
    first, end = (_index(part, completions) for part in (parts[0], parts[-1]))
    if len(parts) == 2 and first >= end:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {end}")
    return first, end


def _index(text: str, completions: int) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,18}", text):
        raise IndexesError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise IndexesError(f'too large index: "{text}"')
    return int(text)


_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")
_ENDS = ("Failed", "Complete", "FailureTarget")


def job_status_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a Job's status."""
    status = new.get("status") or {}
    return [
        *negative(status, _COUNTS, "status"),
        *_uncounted_problems(status),
        *_condition_problems(new, old),
        *_time_problems(new, old),
        *_pod_problems(new, old),
        *_index_problems(new, old),
        *_step_back_problems(new, old),
    ]


def _uncounted_problems(status: JsonObject) -> list[FieldCause]:
    found: list[FieldCause] = []
    seen: set[str] = set()
    uncounted = status.get("uncountedTerminatedPods") or {}
    for name in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(name) or ()):
            field = f"status.uncountedTerminatedPods.{name}[{index}]"
            if not uid:
                found.append(bad_value(field, uid, "must not be empty"))
            elif uid in seen:
                found.append(duplicate(field, uid))
            seen.add(uid)
    return found


def is_true(job: JsonObject, condition: str) -> bool:
    """Return whether a Job has a condition."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == condition and one.get("status") == "True" for one in conditions)


def _is_finished(job: JsonObject) -> bool:
    return is_true(job, "Complete") or is_true(job, "Failed")


def _changed(new: JsonObject, old: JsonObject, *names: str) -> bool:
    """Return whether a condition (capital letter) or a field of the status changed."""
    after, before = new.get("status") or {}, old.get("status") or {}
    return any(
        is_true(new, name) != is_true(old, name)
        if name[0].isupper()
        else (after.get(name) or None) != (before.get(name) or None)
        for name in names
    )


def _condition_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    return [bad_value("status.conditions", OMITTED, detail) for detail in _contradictions(new, old)]


def _contradictions(new: JsonObject, old: JsonObject) -> Iterator[str]:
    complete, failed = is_true(new, "Complete"), is_true(new, "Failed")
    doomed, met = is_true(new, "FailureTarget"), is_true(new, "SuccessCriteriaMet")
    if complete and failed and _changed(new, old, "Complete", "Failed"):
        yield "cannot set Complete=True and Failed=true conditions"
    if complete and doomed and _changed(new, old, "Complete", "FailureTarget"):
        yield "cannot set Complete=True and FailureTarget=true conditions"
    if failed and not doomed and _changed(new, old, "Failed", "failedIndexes"):
        yield "cannot set Failed=True condition without the FailureTarget=true condition"
    if complete and not met and _changed(new, old, "Complete", "SuccessCriteriaMet"):
        yield "cannot set Complete=True condition without the SuccessCriteriaMet=true condition"
    if met and failed:
        yield "cannot set SuccessCriteriaMet=True and Failed=true conditions"
    if met and doomed:
        yield "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"
    if new["spec"].get("successPolicy") is not None and complete and not met:
        yield "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True"


def _time_problems(new: JsonObject, old: JsonObject) -> Iterator[FieldCause]:
    status = new.get("status") or {}
    ended, start = status.get("completionTime"), status.get("startTime")
    complete, field = is_true(new, "Complete"), "status.completionTime"
    if _changed(new, old, "Complete", "completionTime"):
        if ended is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield bad_value(field, ended, detail)
        if ended is None and complete:
            yield required(field, "completionTime is required for Complete jobs")
    if _changed(new, old, "startTime", "completionTime") and start and ended and ended < start:
        yield bad_value(field, ended, "must be equal to or after `startTime`")
    spec = new["spec"]
    empty = spec.get("suspend") and spec.get("completions") == 0
    if start is None and _is_finished(new) and not empty and _finish_changed(new, old, "startTime"):
        yield required("status.startTime", "startTime is required for finished job")


def _finish_changed(new: JsonObject, old: JsonObject, field: str) -> bool:
    return _is_finished(new) != _is_finished(old) or _changed(new, old, field)


def _pod_problems(new: JsonObject, old: JsonObject) -> Iterator[FieldCause]:
    status, finished = new.get("status") or {}, _is_finished(new)
    active, ready = status.get("active") or 0, status.get("ready") or 0
    terminating = status.get("terminating") or 0
    uncounted = status.get("uncountedTerminatedPods") or {}
    if active > 0 and finished and _finish_changed(new, old, "active"):
        yield bad_value("status.active", active, "active>0 is invalid for finished job")
    if (
        finished
        and any(uncounted.values())
        and _finish_changed(new, old, "uncountedTerminatedPods")
    ):
        shown = internal_form(uncounted, "batch.UncountedTerminatedPods")
        field = "status.uncountedTerminatedPods"
        yield bad_value(field, shown, "must be empty for finished job")
    if terminating > 0 and finished and _finish_changed(new, old, "terminating"):
        detail = "terminating>0 is invalid for finished job"
        yield bad_value("status.terminating", terminating, detail)
    if ready > active and _changed(new, old, "ready", "active"):
        yield bad_value("status.ready", ready, "cannot set more ready pods than active")


def _index_problems(new: JsonObject, old: JsonObject) -> Iterator[FieldCause]:
    status, spec = new.get("status") or {}, new["spec"]
    completed, failed = status.get("completedIndexes") or "", status.get("failedIndexes")
    indexed, limited = spec.get("completionMode") == "Indexed", spec.get("backoffLimitPerIndex")
    if _changed(new, old, "completedIndexes"):
        yield from _format_problems(spec, "completedIndexes", completed)
    if _changed(new, old, "failedIndexes") and limited is not None and failed is not None:
        yield from _format_problems(spec, "failedIndexes", failed)
    if completed and not indexed and _changed(new, old, "completedIndexes"):
        detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
        yield bad_value("status.completedIndexes", completed, detail)
    if failed is not None and limited is None and _changed(new, old, "failedIndexes"):
        detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
        yield bad_value("status.failedIndexes", failed, detail)
    if failed and _changed(new, old, "failedIndexes", "completedIndexes"):
        both = overlap(completed, failed, spec.get("completions") or 0)
        if both is not None:
            detail = f"failedIndexes and completedIndexes overlap at index: {both}"
            yield bad_value("status.failedIndexes", failed, detail)


def _format_problems(spec: JsonObject, name: str, indexes: str) -> Iterator[FieldCause]:
    if spec.get("completions") is None:
        return
    try:
        count_indexes(indexes, spec["completions"])
    except IndexesError as error:
        yield bad_value(f"status.{name}", indexes, f"error parsing {name}: {error}")


def _step_back_problems(new: JsonObject, old: JsonObject) -> Iterator[FieldCause]:
    """Return what a status takes back."""
    for end in _ENDS:
        if is_true(old, end) and not is_true(new, end):
            detail = f"cannot disable the terminal {end}=True condition"
            yield bad_value("status.conditions", OMITTED, detail)
    yield from _counter_problems(new, old)
    after, before = new.get("status") or {}, old.get("status") or {}
    ended, start = after.get("completionTime"), after.get("startTime")
    if ended and before.get("completionTime") not in (None, ended):
        yield immutable("status.completionTime", ended)
    resuming = is_true(old, "Suspended") and not is_true(new, "Suspended")
    if before.get("startTime") not in (None, start) and not (resuming or _is_suspended(new)):
        detail = "field is immutable for unsuspended job once set"
        yield bad_value("status.startTime", start, detail)
    if is_true(old, "SuccessCriteriaMet") and not is_true(new, "SuccessCriteriaMet"):
        detail = "cannot disable the SuccessCriteriaMet=True condition"
        yield bad_value("status.conditions", OMITTED, detail)
    if is_true(old, "Complete") and _changed(new, old, "SuccessCriteriaMet"):
        detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions"
        yield bad_value("status.conditions", OMITTED, detail)


def _is_suspended(job: JsonObject) -> bool:
    return bool(job["spec"].get("suspend"))


def _counter_problems(new: JsonObject, old: JsonObject) -> Iterator[FieldCause]:
    spec, after, before = new["spec"], new.get("status") or {}, old.get("status") or {}
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get(
        "parallelism"
    )
    for name in ("failed", "succeeded"):
        count = after.get(name) or 0
        if count < (before.get(name) or 0) and not (elastic and name == "succeeded"):
            yield bad_value(f"status.{name}", count, f"cannot decrease the {name} counter")


_FIXED = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_INTERNAL = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


def job_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a Job's spec."""
    after, before = new["spec"], old["spec"]
    found = _completion_problems(after, before)
    if after.get("selector") != before.get("selector"):
        found.append(immutable("spec.selector", after.get("selector")))
    found += _template_change_problems(after, old)
    return found + [
        immutable(f"spec.{name}", _shown(name, after.get(name)))
        for name in _FIXED
        if after.get(name) != before.get(name)
    ]


def _shown(name: str, value: JsonObject | None) -> JsonObject | None:
    return internal_form(value, _INTERNAL[name]) if value and name in _INTERNAL else value


def _completion_problems(after: JsonObject, before: JsonObject) -> list[FieldCause]:
    completions = after.get("completions")
    if completions == before.get("completions"):
        return []
    if after.get("completionMode") != "Indexed":
        return [immutable("spec.completions", completions)]
    if completions is None or completions == after.get("parallelism"):
        return []
    detail = "can only be modified in tandem with spec.parallelism"
    return [bad_value("spec.completions", completions, detail)]


def _template_change_problems(after: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Allow changes of scheduling fields in the template of a suspended Job."""
    before, template = clone(old["spec"]["template"]), after["template"]
    if not _may_redirect(old):
        same, field = template == before, "spec.template"
        shown = internal_form(template, "core.PodTemplateSpec")
        return [] if same else [immutable(field, shown)]
    expected, pod = before.get("spec") or {}, template.get("spec") or {}
    _take_directives(expected, pod)
    _take_resources(expected, pod)
    if expected == pod:
        return []
    return [immutable("spec.template.spec", internal_form(pod, "core.PodSpec"))]


def _may_redirect(job: JsonObject) -> bool:
    """Return whether a Job is suspended and has no pods."""
    status = job.get("status") or {}
    resting = status.get("startTime") is None or is_true(job, "Suspended")
    return bool(job["spec"].get("suspend")) and resting and not status.get("active")


def _take_directives(expected: JsonObject, pod: JsonObject) -> None:
    """Copy the fields that may change: selectors, tolerations, gates and node affinity."""
    for name in _DIRECTIVES:
        _set(expected, name, pod.get(name))
    affinity = dict(expected.get("affinity") or {})
    _set(affinity, "nodeAffinity", (pod.get("affinity") or {}).get("nodeAffinity"))
    _set(expected, "affinity", affinity if affinity or "affinity" in pod else None)


def _take_resources(expected: JsonObject, pod: JsonObject) -> None:
    for field in ("containers", "initContainers"):
        ours, theirs = expected.get(field) or [], pod.get(field) or []
        if len(ours) != len(theirs):
            continue
        for mine, other in zip(ours, theirs, strict=True):
            if mine.get("name") == other.get("name"):
                _set(mine, "resources", other.get("resources"))


def _set(obj: JsonObject, name: str, value: object) -> None:
    if value is None:
        obj.pop(name, None)
    else:
        obj[name] = value
