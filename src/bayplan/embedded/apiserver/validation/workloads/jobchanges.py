"""What is wrong with a change of a Job's spec: most of it stays, its template above all."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import bad_value, immutable
from bayplan.embedded.apiserver.validation.workloads.jobstatus import is_true

_FIXED = (
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_INTERNAL = {"podFailurePolicy": "batch.PodFailurePolicy", "successPolicy": "batch.SuccessPolicy"}
_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")


def job_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with a change of a Job's spec."""
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


def _completion_problems(after: JsonObject, before: JsonObject) -> list[Cause]:
    completions = after.get("completions")
    if completions == before.get("completions"):
        return []
    if after.get("completionMode") != "Indexed":
        return [immutable("spec.completions", completions)]
    if completions is None or completions == after.get("parallelism"):
        return []
    why = "can only be modified in tandem with spec.parallelism"
    return [bad_value("spec.completions", completions, why)]


def _template_change_problems(after: JsonObject, old: JsonObject) -> list[Cause]:
    """A template changes only while its Job is suspended, and then only where pods may go."""
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
    """Whether a Job is suspended, and no pod of it has been made or is left."""
    status = job.get("status") or {}
    resting = status.get("startTime") is None or is_true(job, "Suspended")
    return bool(job["spec"].get("suspend")) and resting and not status.get("active")


def _take_directives(expected: JsonObject, pod: JsonObject) -> None:
    """Where pods may go can change: selectors, tolerations, gates and node affinity."""
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
