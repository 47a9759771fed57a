"""What is wrong with PodDisruptionBudgets."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import bad_value, not_supported
from bayplan.embedded.apiserver.validation.conditions import condition_problems
from bayplan.embedded.apiserver.validation.numbers import (
    int_or_percent_problems,
    negative,
    over_hundred_percent,
)
from bayplan.embedded.apiserver.validation.selectors import selector_problems

_AMOUNTS = ("minAvailable", "maxUnavailable")
_POLICIES = ("AlwaysAllow", "IfHealthyBudget")
_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def budget_problems(budget: JsonObject) -> list[Cause]:
    """What is wrong with a budget."""
    spec = budget.get("spec") or {}
    found = _amount_problems(spec)
    found += selector_problems(spec.get("selector"), "spec.selector")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _POLICIES:
        found.append(not_supported("spec.unhealthyPodEvictionPolicy", policy, _POLICIES))
    return found


def _amount_problems(spec: JsonObject) -> list[Cause]:
    said = [(name, spec[name]) for name in _AMOUNTS if spec.get(name) is not None]
    found: list[Cause] = []
    if len(said) == len(_AMOUNTS):
        shown = internal_form(spec, "policy.PodDisruptionBudgetSpec")
        why = "minAvailable and maxUnavailable cannot be both set"
        found.append(bad_value("spec", shown, why))
    for name, amount in said:
        found += int_or_percent_problems(amount, f"spec.{name}")
        found += over_hundred_percent(amount, f"spec.{name}")
    return found


def budget_status_problems(new: JsonObject, _old: JsonObject) -> list[Cause]:
    """What is wrong with a budget's status."""
    status = new.get("status") or {}
    found = condition_problems(status.get("conditions") or (), "status.conditions")
    return found + negative(status, _COUNTS, "status")
