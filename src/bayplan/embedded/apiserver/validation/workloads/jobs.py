"""What is wrong with Jobs and CronJobs, their policies and their changes aside."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    not_supported,
    required,
    too_long,
)
from bayplan.embedded.apiserver.validation.names import dns_label, domain_prefixed_path_problems
from bayplan.embedded.apiserver.validation.numbers import negative
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.embedded.apiserver.validation.workloads.jobpolicies import (
    failure_policy_problems,
    success_policy_problems,
)
from bayplan.embedded.apiserver.validation.workloads.schedules import (
    schedule_problems,
    time_zone_problems,
)
from bayplan.embedded.apiserver.validation.workloads.templates import (
    mismatched_labels,
    template_problems,
)

UID_LABELS = ("controller-uid", "batch.kubernetes.io/controller-uid")
NAME_LABELS = ("job-name", "batch.kubernetes.io/job-name")

_COUNTS = (
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
)
_MODES = ("NonIndexed", "Indexed")
_REPLACEMENTS = ("Failed", "TerminatingOrFailed")
_CONCURRENCY = ("Allow", "Forbid", "Replace")
_MOST_PARALLEL = 100_000
_MOST_FAILED = 100_000
_MANY_COMPLETIONS = 100_000
_MOST_WITH_MANY = 10_000
_MANAGER_LENGTH = 63
_CRON_NAME_LENGTH = 52
"""What a CronJob's name may have, so that its Jobs' names have room for a time."""


def job_problems(job: JsonObject) -> list[Cause]:
    """What is wrong with a Job."""
    spec = job["spec"]
    found = [*_generated_problems(job), *job_spec_problems(spec, "spec")]
    selector = spec.get("selector")
    if selector is None:
        found.append(required("spec.selector"))
    unsound = selector_problems(selector, "spec.selector")
    if not unsound:
        unsound = mismatched_labels(selector, spec["template"], "spec.template")
    return [*found, *unsound, *_hostname_problems(job)]


def _generated_problems(job: JsonObject) -> list[Cause]:
    """A selector and labels that were left to the server must be the server's."""
    spec, meta = job["spec"], job["metadata"]
    if spec.get("manualSelector") or spec.get("selector") is None:
        return []
    uid, name = meta.get("uid") or "", meta.get("name") or ""
    labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    expected = {UID_LABELS[0]: uid, NAME_LABELS[0]: name, UID_LABELS[1]: uid, NAME_LABELS[1]: name}
    found = [
        _label_problem(labels, key, value)
        for key, value in expected.items()
        if labels.get(key) != value
    ]
    own = {"metadata": {"labels": expected}}
    if not selector_problems(spec["selector"], "") and mismatched_labels(spec["selector"], own, ""):
        why = "`selector` not auto-generated"
        found.append(bad_value("spec.selector", spec["selector"], why))
    return found


def _label_problem(labels: JsonObject, key: str, value: str) -> Cause:
    place = "spec.template.metadata.labels"
    if key not in labels:
        return required(f"{place}[{key}]", f"must be '{value}'")
    return bad_value(f"{place}[{key}]", dict(sorted(labels.items())), f"must be '{value}'")


def _hostname_problems(job: JsonObject) -> list[Cause]:
    """The pods of an indexed Job have its name and their index as host names."""
    spec, name = job["spec"], job["metadata"].get("name") or ""
    completions = spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed" or completions <= 0:
        return []
    longest = f"{name}-{completions - 1}"
    if not dns_label(longest):
        return []
    why = f"will not able to create pod with invalid DNS label: {longest}"
    return [bad_value("metadata.name", name, why)]


def job_spec_problems(spec: JsonObject, field: str) -> list[Cause]:
    """What is wrong with a Job's spec, its selector aside."""
    template = spec.get("template") or {}
    return [
        *negative(spec, _COUNTS, field),
        *_dependency_problems(spec, field),
        *_manager_problems(spec, field),
        *_mode_problems(spec, field),
        *failure_policy_problems(spec, f"{field}.podFailurePolicy"),
        *success_policy_problems(spec, f"{field}.successPolicy"),
        *_replacement_problems(spec, f"{field}.podReplacementPolicy"),
        *template_problems(template, f"{field}.template"),
        *_restart_problems(spec, f"{field}.template.spec.restartPolicy"),
    ]


def _dependency_problems(spec: JsonObject, field: str) -> list[Cause]:
    if spec.get("maxFailedIndexes") is None or spec.get("backoffLimitPerIndex") is not None:
        return []
    return [required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")]


def _manager_problems(spec: JsonObject, field: str) -> list[Cause]:
    manager = spec.get("managedBy")
    if manager is None:
        return []
    found = domain_prefixed_path_problems(manager, f"{field}.managedBy")
    if len(manager) > _MANAGER_LENGTH:
        found.append(too_long(f"{field}.managedBy", _MANAGER_LENGTH))
    return found


def _mode_problems(spec: JsonObject, field: str) -> list[Cause]:
    mode = spec.get("completionMode")
    found = []
    if mode is not None and mode not in _MODES:
        found.append(not_supported(f"{field}.completionMode", mode, _MODES))
    if mode == "Indexed":
        return found + _indexed_problems(spec, field)
    if mode in (None, "NonIndexed"):
        found += [
            bad_value(f"{field}.{name}", spec[name], "requires indexed completion mode")
            for name in ("backoffLimitPerIndex", "maxFailedIndexes")
            if spec.get(name) is not None
        ]
    return found


def _indexed_problems(spec: JsonObject, field: str) -> list[Cause]:
    completions, most_failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    found: list[Cause] = []
    if completions is None:
        found.append(required(f"{field}.completions", "when completion mode is Indexed"))
    if parallelism > _MOST_PARALLEL:
        why = f"must be less than or equal to {_MOST_PARALLEL} when completion mode is Indexed"
        found.append(bad_value(f"{field}.parallelism", parallelism, why))
    if completions is not None and most_failed is not None and most_failed > completions:
        why = "must be less than or equal to completions"
        found.append(bad_value(f"{field}.maxFailedIndexes", most_failed, why))
    if most_failed is not None and most_failed > _MOST_FAILED:
        why = f"must be less than or equal to {_MOST_FAILED}"
        found.append(bad_value(f"{field}.maxFailedIndexes", most_failed, why))
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        found += _many_problems(parallelism, most_failed, field)
    return found


def _many_problems(parallelism: int, most_failed: int | None, field: str) -> list[Cause]:
    """With very many indexes, each with a limit of its own, the status must stay small."""
    found = []
    if most_failed is None:
        why = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        found.append(required(f"{field}.maxFailedIndexes", why))
    why = (
        f"must be less than or equal to {_MOST_WITH_MANY} when completions are above "
        f"{_MANY_COMPLETIONS} and used with backoff limit per index"
    )
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", most_failed or 0)):
        if value > _MOST_WITH_MANY:
            found.append(bad_value(f"{field}.{name}", value, why))
    return found


def _replacement_problems(spec: JsonObject, field: str) -> list[Cause]:
    policy = spec.get("podReplacementPolicy")
    choices = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    return [] if policy is None or policy in choices else [not_supported(field, policy, choices)]


def _restart_problems(spec: JsonObject, field: str) -> list[Cause]:
    """A Job's pods must be able to end."""
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in {"Always", ""}:
        return [required(field, 'valid values: "OnFailure", "Never"')]
    if policy not in {"OnFailure", "Never"}:
        return [not_supported(field, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        why = 'only "Never" is supported when podFailurePolicy is specified'
        return [bad_value(field, policy, why)]
    return []


def cron_job_problems(cron_job: JsonObject) -> list[Cause]:
    """What is wrong with a CronJob, its schedule and time zone aside."""
    spec = cron_job["spec"]
    policy = spec.get("concurrencyPolicy")
    found = negative(spec, ["startingDeadlineSeconds"], "spec")
    if policy not in _CONCURRENCY:
        found.append(not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY))
    found += _job_template_problems(spec["jobTemplate"].get("spec") or {})
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return found + negative(spec, limits, "spec")


def _job_template_problems(spec: JsonObject) -> list[Cause]:
    field = "spec.jobTemplate.spec"
    found = job_spec_problems(spec, field)
    if spec.get("selector") is not None:
        why = "`selector` will be auto-generated"
        found.append(bad_value(f"{field}.selector", spec["selector"], why))
    if spec.get("manualSelector"):
        found.append(not_supported(f"{field}.manualSelector", True, ("nil", "false")))
    return found


def new_cron_job_problems(cron_job: JsonObject) -> list[Cause]:
    """What else is wrong with a new CronJob."""
    spec, name = cron_job["spec"], cron_job["metadata"].get("name") or ""
    found = schedule_problems(spec.get("schedule") or "", "", spec.get("timeZone"))
    found += time_zone_problems(spec.get("timeZone"))
    if len(name) > _CRON_NAME_LENGTH:
        why = f"must be no more than {_CRON_NAME_LENGTH} characters"
        found.append(bad_value("metadata.name", name, why))
    return found


def cron_job_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with a change of a CronJob: what it had before, it may keep."""
    after, before = new["spec"], old["spec"]
    zone = after.get("timeZone")
    found = schedule_problems(after.get("schedule") or "", before.get("schedule") or "", zone)
    return found if zone == before.get("timeZone") else found + time_zone_problems(zone)
