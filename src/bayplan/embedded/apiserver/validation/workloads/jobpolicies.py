"""What is wrong with a Job's policies: which failures of pods count, and when it has succeeded."""

from __future__ import annotations

from itertools import pairwise

from bayplan.embedded.apiserver.errors import Cause
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
from bayplan.embedded.apiserver.validation.names import name_problems, qualified_name
from bayplan.embedded.apiserver.validation.workloads.indexes import IndexesError, count_indexes

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_OPERATORS = ("In", "NotIn")
_STATUSES = ("False", "True", "Unknown")
_MOST_RULES = 20
_MOST_CODES = 255
_MOST_PATTERNS = 20
_INDEXES_LENGTH = 64 * 1024


def failure_policy_problems(spec: JsonObject, field: str) -> list[Cause]:
    """What is wrong with the policy for failed pods, if there is one."""
    policy = spec.get("podFailurePolicy")
    if policy is None:
        return []
    rules = policy.get("rules") or []
    found = (
        [too_many(f"{field}.rules", len(rules), _MOST_RULES)] if len(rules) > _MOST_RULES else []
    )
    for index, rule in enumerate(rules):
        found += _rule_problems(spec, rule, f"{field}.rules[{index}]")
    return found


def _rule_problems(spec: JsonObject, rule: JsonObject, field: str) -> list[Cause]:
    codes, conditions = rule.get("onExitCodes"), rule.get("onPodConditions") or []
    found = _action_problems(spec, rule.get("action") or "", f"{field}.action")
    if codes is not None:
        found += _code_problems(spec, codes, f"{field}.onExitCodes")
    found += _pattern_problems(conditions, f"{field}.onPodConditions")
    if codes is not None and conditions:
        why = "specifying both OnExitCodes and OnPodConditions is not supported"
        found.append(bad_value(field, OMITTED, why))
    if codes is None and not conditions:
        why = "specifying one of OnExitCodes and OnPodConditions is required"
        found.append(bad_value(field, OMITTED, why))
    return found


def _action_problems(spec: JsonObject, action: str, field: str) -> list[Cause]:
    found = _choice_problems(action, _ACTIONS, field)
    if action == "FailIndex" and spec.get("backoffLimitPerIndex") is None:
        found.append(bad_value(field, action, "requires the backoffLimitPerIndex to be set"))
    return found


def _choice_problems(value: str, choices: tuple[str, ...], field: str) -> list[Cause]:
    if value in choices:
        return []
    if value:
        return [not_supported(field, value, choices)]
    listed = " ".join(f'"{choice}"' for choice in choices)
    return [required(field, f"valid values: [{listed}]")]


def _pattern_problems(conditions: list[JsonObject], field: str) -> list[Cause]:
    found = []
    if len(conditions) > _MOST_PATTERNS:
        found.append(too_many(field, len(conditions), _MOST_PATTERNS))
    for index, pattern in enumerate(conditions):
        place = f"{field}[{index}]"
        found += name_problems(qualified_name, pattern.get("type") or "", f"{place}.type")
        found += _choice_problems(pattern.get("status") or "", _STATUSES, f"{place}.status")
    return found


def _code_problems(spec: JsonObject, codes: JsonObject, field: str) -> list[Cause]:
    operator, values = codes.get("operator") or "", codes.get("values") or []
    found = _choice_problems(operator, _OPERATORS, f"{field}.operator")
    name = codes.get("containerName")
    if name is not None and name not in _container_names(spec):
        why = "must be one of the container or initContainer names in the pod template"
        found.append(bad_value(f"{field}.containerName", name, why))
    return found + _value_problems(operator, values, f"{field}.values")


def _container_names(spec: JsonObject) -> set[str]:
    pod = (spec.get("template") or {}).get("spec") or {}
    listed = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    return {container.get("name") or "" for container in listed}


def _value_problems(operator: str, values: list[int], field: str) -> list[Cause]:
    found: list[Cause] = []
    if not values:
        found.append(bad_value(field, values or None, "at least one value is required"))
    if len(values) > _MOST_CODES:
        found.append(too_many(field, len(values), _MOST_CODES))
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


def success_policy_problems(spec: JsonObject, field: str) -> list[Cause]:
    """What is wrong with the policy for success, if there is one."""
    policy = spec.get("successPolicy")
    if policy is None:
        return []
    if spec.get("completionMode") != "Indexed":
        shown = internal_form(policy, "batch.SuccessPolicy")
        return [bad_value(field, shown, "requires indexed completion mode")]
    rules, found = policy.get("rules") or [], []
    if not rules:
        why = "at least one rules must be specified when the successPolicy is specified"
        found.append(required(f"{field}.rules", why))
    if len(rules) > _MOST_RULES:
        found.append(too_many(f"{field}.rules", len(rules), _MOST_RULES))
    for index, rule in enumerate(rules):
        found += _success_problems(rule, spec.get("completions") or 0, f"{field}.rules[{index}]")
    return found


def _success_problems(rule: JsonObject, completions: int, field: str) -> list[Cause]:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if indexes is None and count is None:
        why = "at least one of succeededCount or succeededIndexes must be specified"
        return [required(field, why)]
    found: list[Cause] = []
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


def _count_problems(count: int, completions: int, total: int | None, field: str) -> list[Cause]:
    place, found = f"{field}.succeededCount", []
    bounds = [(completions, "the number of specified completions")]
    if total is not None:
        bounds.append((total, "the number of indexes in the specified succeededIndexes field"))
    if count < 0:
        found.append(bad_value(place, count, NEGATIVE))
    for most, what in bounds:
        if count > most:
            why = f"must be less than or equal to {most} ({what})"
            found.append(bad_value(place, count, why))
    return found
