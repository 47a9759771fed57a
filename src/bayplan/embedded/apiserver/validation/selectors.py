"""What is wrong with a label selector."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required
from bayplan.embedded.apiserver.validation.names import (
    label_problems,
    label_value,
    name_problems,
    qualified_name,
)

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def selector_problems(selector: JsonObject | None, field: str) -> list[Cause]:
    """What is wrong with a selector of labels and expressions; no selector is none of its faults.

    A selector without problems is one that can be matched.
    """
    if not selector:
        return []
    found = label_problems(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        found += _expression_problems(expression, f"{field}.matchExpressions[{index}]")
    return found


def _expression_problems(expression: JsonObject, field: str) -> list[Cause]:
    operator, values = expression.get("operator") or "", expression.get("values") or []
    return [
        *_operator_problems(operator, values, field),
        *name_problems(qualified_name, expression.get("key") or "", f"{field}.key"),
        *(
            problem
            for index, value in enumerate(values)
            for problem in name_problems(label_value, value, f"{field}.values[{index}]")
        ),
    ]


def _operator_problems(operator: str, values: list[str], field: str) -> list[Cause]:
    if operator in _WITH_VALUES:
        why = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{field}.values", why)]
    if operator in _WITHOUT_VALUES:
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden_field(f"{field}.values", why)] if values else []
    return [bad_value(f"{field}.operator", operator, "not a valid selector operator")]


def is_empty(selector: JsonObject) -> bool:
    """Whether a selector asks for nothing, and so takes everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")
