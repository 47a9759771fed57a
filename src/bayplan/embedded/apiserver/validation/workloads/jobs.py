"""Validation of Jobs and CronJobs, and of their policies.

Policies define which pod failures count, and when a Job has succeeded.
"""

from __future__ import annotations

from itertools import pairwise

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    NEGATIVE,
    OMITTED,
    bad_value,
    duplicate,
    not_supported,
    required,
    too_long,
    too_many,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    domain_prefixed_path_problems,
    name_problems,
    qualified_name,
)
from bayplan.embedded.apiserver.validation.numbers import negative
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.embedded.apiserver.validation.workloads.jobchanges import IndexesError, count_indexes
from bayplan.embedded.apiserver.validation.workloads.schedules import (
    schedule_problems,
    time_zone_problems,
)
from bayplan.embedded.apiserver.validation.workloads.templates import (
    mismatched_labels,
    template_problems,
)

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MAX_RULES = 20
_MAX_CODES = 255
_MAX_PATTERNS = 20
_INDEXES_LENGTH = 64 * 1024


def failure_policy_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of the pod failure policy."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    rules = policy.get("rules") or []
    found = [too_many(f"{field}.rules", len(rules), _MAX_RULES)] if len(rules) > _MAX_RULES else []
    for index, rule in enumerate(rules):
        found += _rule_problems(spec, rule, f"{field}.rules[{index}]")
    return found


def _rule_problems(spec: JsonObject, rule: JsonObject, field: str) -> list[FieldCause]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    found = _action_problems(spec, rule.get("action") or "", f"{field}.action")
    if codes is not None:
        found += _code_problems(spec, codes, f"{field}.onExitCodes")
    found += _pattern_problems(conditions, f"{field}.onPodConditions")
    if codes is not None and conditions:
        detail = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(bad_value(field, OMITTED, detail))
    if codes is None and not conditions:
        detail = "specifying one of OnExitCodes and OnPodConditions is required"
        found.append(bad_value(field, OMITTED, detail))
    return found


def _action_problems(spec: JsonObject, action: str, field: str) -> list[FieldCause]:
    found = _choice_problems(action, _ACTIONS, field)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        found.append(bad_value(field, action, "requires the backoffLimitPerIndex to be set"))
    return found


def _choice_problems(value: str, choices: tuple[str, ...], field: str) -> list[FieldCause]:
    if value in choices:
        return []
    if value:
        return [not_supported(field, value, choices)]
    listed = " ".join(f'"{choice}"' for choice in choices)
    return [required(field, f"valid values: [{listed}]")]


def _pattern_problems(conditions: list[JsonObject], field: str) -> list[FieldCause]:
    found = []
    if len(conditions) > _MAX_PATTERNS:
        found.append(too_many(field, len(conditions), _MAX_PATTERNS))
    for index, pattern in enumerate(conditions):
        place = f"{field}[{index}]"
        found += name_problems(qualified_name, pattern.get("type") or "", f"{place}.type")
        found += _choice_problems(pattern.get("status") or "", _STATUSES, f"{place}.status")
    return found


def _code_problems(spec: JsonObject, codes: JsonObject, field: str) -> list[FieldCause]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    found = _choice_problems(operator, _OPERATORS, f"{field}.operator")
    name = codes.get("containerName")
    if name is not None and name not in _container_names(spec):
        detail = "must be one of the container or initContainer names in the pod template"
        found.append(bad_value(f"{field}.containerName", name, detail))
    return found + _value_problems(operator, values, f"{field}.values")


def _container_names(spec: JsonObject) -> set[str]:
    pod = (spec.get("template") or {}).get("spec") or {}
    listed = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    return {container.get("name") or "" for container in listed}


def _value_problems(operator: str, values: list[int], field: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if not values:
        found.append(bad_value(field, values or None, "at least one value is required"))
    if len(values) > _MAX_CODES:
        found.append(too_many(field, len(values), _MAX_CODES))
    seen: set[int] = set()
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            found.append(bad_value(f"{field}[{index}]", 0, "must not be 0 for the In operator"))
        if value in seen:
            found.append(duplicate(f"{field}[{index}]", value))
        seen.add(value)
    if any(before > after for before, after in pairwise(values)):
        found.append(bad_value(field, values, "must be ordered"))
    return found


def success_policy_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of the success policy."""
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    if spec.get("completionMode") != "Indexed":
        shown = internal_form(policy, "batch.SuccessPolicy")
        return [bad_value(field, shown, "requires indexed completion mode")]
    rules, found = policy.get("rules") or [], []
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        found.append(required(f"{field}.rules", detail))
    if len(rules) > _MAX_RULES:
        found.append(too_many(f"{field}.rules", len(rules), _MAX_RULES))
    for index, rule in enumerate(rules):
        found += _success_problems(rule, spec.get("completions") or 0, f"{field}.rules[{index}]")
    return found


def _success_problems(rule: JsonObject, completions: int, field: str) -> list[FieldCause]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        detail = "at least one of succeededCount or succeededIndexes must be specified"
        return [required(field, detail)]
    found: list[FieldCause] = []
    total = 0
    place = f"{field}.succeededIndexes"
    if indexes is not None:
        if len(indexes) > _INDEXES_LENGTH:
            found.append(too_long(place, _INDEXES_LENGTH))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            found.append(bad_value(place, indexes, f"error parsing succeededIndexes: {error}"))
    if count is None:
        return found
    return found + _count_problems(
        count, completions, total if indexes is not None else None, field
    )


def _count_problems(
    count: int, completions: int, total: int | None, field: str
) -> list[FieldCause]:
    place, found = f"{field}.succeededCount", []
    bounds = [(completions, "the number of specified completions")]
    if total is not None:
        bounds.append((total, "the number of indexes in the specified succeededIndexes field"))
    if count < 0:
        found.append(bad_value(place, count, NEGATIVE))
    for most, what in bounds:
        if count > most:
            detail = f"must be less than or equal to {most} ({what})"
            found.append(bad_value(place, count, detail))
    return found


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
_MAX_PARALLEL = 100_000
_MAX_FAILED = 100_000
_MANY_COMPLETIONS = 100_000
_MAX_WITH_MANY = 10_000
_MANAGER_LENGTH = 63
_CRON_NAME_LENGTH = 52
"""Limit of a CronJob's name, so that its Jobs' names can have a suffix."""


def job_problems(job: JsonObject) -> list[FieldCause]:
    """Return the problems of a Job."""
    spec = job["spec"]
    found = [*_generated_problems(job), *job_spec_problems(spec, "spec")]
    selector = spec.get("selector")
    if selector is None:
        found.append(required("spec.selector"))
    unsound = selector_problems(selector, "spec.selector")
    if not unsound:
        unsound = mismatched_labels(selector, spec["template"], "spec.template")
    return [*found, *unsound, *_hostname_problems(job)]


def _generated_problems(job: JsonObject) -> list[FieldCause]:
    """Require the generated selector and labels unless `manualSelector` is set."""
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
        detail = "`selector` not auto-generated"
        found.append(bad_value("spec.selector", spec["selector"], detail))
    return found


def _label_problem(labels: JsonObject, key: str, value: str) -> FieldCause:
    place = "spec.template.metadata.labels"
    if key not in labels:
        return required(f"{place}[{key}]", f"must be '{value}'")
    return bad_value(f"{place}[{key}]", dict(sorted(labels.items())), f"must be '{value}'")


def _hostname_problems(job: JsonObject) -> list[FieldCause]:
    """Require the host names of an Indexed Job's pods to be valid."""
    spec, name = job["spec"], job["metadata"].get("name") or ""
    completions = spec.get("completions") or 0
    if spec.get("completionMode") != "Indexed" or completions <= 0:
        return []
    longest = f"{name}-{completions - 1}"
    if not dns_label(longest):
        return []
    detail = f"will not able to create pod with invalid DNS label: {longest}"
    return [bad_value("metadata.name", name, detail)]


def job_spec_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of a Job's spec, without its selector."""
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


def _dependency_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    if spec.get("maxFailedIndexes") is None or spec.get("backoffLimitPerIndex") is not None:
        return []
    return [required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")]


def _manager_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    manager = spec.get("managedBy")
    if manager is None:
        return []
    found = domain_prefixed_path_problems(manager, f"{field}.managedBy")
    if len(manager) > _MANAGER_LENGTH:
        found.append(too_long(f"{field}.managedBy", _MANAGER_LENGTH))
    return found


def _mode_problems(spec: JsonObject, field: str) -> list[FieldCause]:
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


def _indexed_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    completions, most_failed = spec.get("completions"), spec.get("maxFailedIndexes")
    parallelism = spec.get("parallelism") or 0
    found: list[FieldCause] = []
    if completions is None:
        found.append(required(f"{field}.completions", "when completion mode is Indexed"))
    if parallelism > _MAX_PARALLEL:
        detail = f"must be less than or equal to {_MAX_PARALLEL} when completion mode is Indexed"
        found.append(bad_value(f"{field}.parallelism", parallelism, detail))
    if completions is not None and most_failed is not None and most_failed > completions:
        detail = "must be less than or equal to completions"
        found.append(bad_value(f"{field}.maxFailedIndexes", most_failed, detail))
    if most_failed is not None and most_failed > _MAX_FAILED:
        detail = f"must be less than or equal to {_MAX_FAILED}"
        found.append(bad_value(f"{field}.maxFailedIndexes", most_failed, detail))
    if (completions or 0) > _MANY_COMPLETIONS and spec.get("backoffLimitPerIndex") is not None:
        found += _many_problems(parallelism, most_failed, field)
    return found


def _many_problems(parallelism: int, most_failed: int | None, field: str) -> list[FieldCause]:
    """Limit the indexes of Jobs with a backoff limit per index, to keep the status small."""
    found = []
    if most_failed is None:
        detail = f"must be specified when completions is above {_MANY_COMPLETIONS}"
        found.append(required(f"{field}.maxFailedIndexes", detail))
    detail = (
        f"must be less than or equal to {_MAX_WITH_MANY} when completions are above "
        f"{_MANY_COMPLETIONS} and used with backoff limit per index"
    )
    for name, value in (("parallelism", parallelism), ("maxFailedIndexes", most_failed or 0)):
        if value > _MAX_WITH_MANY:
            found.append(bad_value(f"{field}.{name}", value, detail))
    return found


def _replacement_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    policy = spec.get("podReplacementPolicy")
    choices = ("Failed",) if spec.get("podFailurePolicy") is not None else _REPLACEMENTS
    return [] if policy is None or policy in choices else [not_supported(field, policy, choices)]


def _restart_problems(spec: JsonObject, field: str) -> list[FieldCause]:
    """Refuse the restart policy Always."""
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") or ""
    if policy in {"Always", ""}:
        return [required(field, 'valid values: "OnFailure", "Never"')]
    if policy not in {"OnFailure", "Never"}:
        return [not_supported(field, policy, ("OnFailure", "Never"))]
    if spec.get("podFailurePolicy") is not None and policy != "Never":
        detail = 'only "Never" is supported when podFailurePolicy is specified'
        return [bad_value(field, policy, detail)]
    return []


def cron_job_problems(cron_job: JsonObject) -> list[FieldCause]:
    """Return the problems of a CronJob, without its schedule and time zone."""
    spec = cron_job["spec"]
    policy = spec.get("concurrencyPolicy")
    found = negative(spec, ["startingDeadlineSeconds"], "spec")
    if policy not in _CONCURRENCY:
        found.append(not_supported("spec.concurrencyPolicy", policy, _CONCURRENCY))
    found += _job_template_problems(spec["jobTemplate"].get("spec") or {})
    limits = ("successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    return found + negative(spec, limits, "spec")


def _job_template_problems(spec: JsonObject) -> list[FieldCause]:
    field = "spec.jobTemplate.spec"
    found = job_spec_problems(spec, field)
    if spec.get("selector") is not None:
        detail = "`selector` will be auto-generated"
        found.append(bad_value(f"{field}.selector", spec["selector"], detail))
    if spec.get("manualSelector"):
        found.append(not_supported(f"{field}.manualSelector", True, ("nil", "false")))
    return found


def new_cron_job_problems(cron_job: JsonObject) -> list[FieldCause]:
    """Return the problems that only a new CronJob can have."""
    spec, name = cron_job["spec"], cron_job["metadata"].get("name") or ""
    found = schedule_problems(spec.get("schedule") or "", "", spec.get("timeZone"))
    found += time_zone_problems(spec.get("timeZone"))
    if len(name) > _CRON_NAME_LENGTH:
        detail = f"must be no more than {_CRON_NAME_LENGTH} characters"
        found.append(bad_value("metadata.name", name, detail))
    return found


def cron_job_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a CronJob; unchanged fields are accepted."""
    after, before = new["spec"], old["spec"]
    zone = after.get("timeZone")
    found = schedule_problems(after.get("schedule") or "", before.get("schedule") or "", zone)
    return found if zone == before.get("timeZone") else found + time_zone_problems(zone)
