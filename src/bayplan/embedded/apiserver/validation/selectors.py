"""Validation of label selectors and node selectors; deprecated labels."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    label_problems,
    label_value,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.numbers import repeats

_WITH_VALUES = ("In", "NotIn")
_WITHOUT_VALUES = ("Exists", "DoesNotExist")


def selector_problems(selector: JsonObject | None, field: str) -> list[FieldCause]:
    """Return the problems of a label selector; an absent one has none.

    A selector without problems can be matched.
    """
    if not selector:
        return []
    found = label_problems(selector.get("matchLabels") or {}, f"{field}.matchLabels")
    for index, expression in enumerate(selector.get("matchExpressions") or ()):
        found += _expression_problems(expression, f"{field}.matchExpressions[{index}]")
    return found


def _expression_problems(expression: JsonObject, field: str) -> list[FieldCause]:
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


def _operator_problems(operator: str, values: list[str], field: str) -> list[FieldCause]:
    if operator in _WITH_VALUES:
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{field}.values", detail)]
    if operator in _WITHOUT_VALUES:
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden_field(f"{field}.values", detail)] if values else []
    return [bad_value(f"{field}.operator", operator, "not a valid selector operator")]


def is_empty(selector: JsonObject) -> bool:
    """Return whether a selector is empty, and so matches everything."""
    return not selector.get("matchLabels") and not selector.get("matchExpressions")


_DEPRECATED_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


def node_selector_problems(selector: JsonObject, field: str) -> list[FieldCause]:
    """Return the problems of a node selector, including label values."""
    terms, found = selector.get("nodeSelectorTerms") or (), list[FieldCause]()
    if not terms:
        detail = "must have at least one node selector term"
        return [required(f"{field}.nodeSelectorTerms", detail)]
    for index, term in enumerate(terms):
        found += node_selector_term_problems(term, f"{field}.nodeSelectorTerms[{index}]")
    return found


def node_selector_term_problems(
    term: JsonObject, field: str, *, any_value: bool = False
) -> list[FieldCause]:
    """Return the problems of a node selector term; `any_value` accepts invalid values."""
    found: list[FieldCause] = []
    for index, one in enumerate(term.get("matchExpressions") or ()):
        found += _term_expression_problems(one, f"{field}.matchExpressions[{index}]", any_value)
    for index, one in enumerate(term.get("matchFields") or ()):
        found += _field_problems(one, f"{field}.matchFields[{index}]")
    return found


def _term_expression_problems(
    expression: JsonObject, field: str, any_value: bool
) -> list[FieldCause]:
    values = expression.get("values") or []
    found = _term_operator_problems(expression.get("operator") or "", values, field)
    found += name_problems(qualified_name, expression.get("key") or "", f"{field}.key")
    for index, value in enumerate(() if any_value else values):
        found += name_problems(label_value, value, f"{field}.values[{index}]")
    return found


def _term_operator_problems(operator: str, values: list[str], field: str) -> list[FieldCause]:
    if operator in ("In", "NotIn"):
        detail = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{field}.values", detail)]
    if operator in ("Exists", "DoesNotExist"):
        detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden_field(f"{field}.values", detail)] if values else []
    if operator in ("Gt", "Lt"):
        detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if len(values) == 1 else [required(f"{field}.values", detail)]
    return [bad_value(f"{field}.operator", operator, "not a valid selector operator")]


def _field_problems(expression: JsonObject, field: str) -> list[FieldCause]:
    key, values = expression.get("key") or "", expression.get("values") or []
    operator, found = expression.get("operator") or "", list[FieldCause]()
    if operator not in ("In", "NotIn"):
        found.append(bad_value(f"{field}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{field}.values", detail))
    if key != "metadata.name":
        return [*found, bad_value(f"{field}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        found += name_problems(subdomain, value, f"{field}.values[{index}]")
    return found


def topology_problems(terms: Iterable[JsonObject], field: str) -> list[FieldCause]:
    """Return the problems of a storage class's allowed topologies."""
    found: list[FieldCause] = []
    seen: list[dict[str, set[str]]] = [{}]
    for index, term in enumerate(terms):
        place = f"{field}[{index}].matchLabelExpressions"
        meant, problems = _read_topology(term, place)
        found += problems
        if meant in seen:
            found.append(duplicate(place, ""))
        seen.append(meant)
    return found


def _read_topology(term: JsonObject, field: str) -> tuple[dict[str, set[str]], list[FieldCause]]:
    meant: dict[str, set[str]] = {}
    found: list[FieldCause] = []
    for index, one in enumerate(term.get("matchLabelExpressions") or ()):
        key, values = one.get("key") or "", one.get("values") or []
        found += _value_problems(values, f"{field}[{index}].values")
        found += name_problems(qualified_name, key, f"{field}[{index}].key")
        if key in meant:
            found.append(duplicate(f"{field}[{index}].key", key))
        meant[key] = set(values)
    return meant, found


def _value_problems(values: list[str], field: str) -> list[FieldCause]:
    if not values:
        return [required(field)]
    return [duplicate(f"{field}[{index}]", values[index]) for index in repeats(values)]


def label_deprecation(key: str) -> str:
    """Return the warning about a deprecated node label; empty for others."""
    return _DEPRECATED_LABELS.get(key, "")


def expression_deprecations(expressions: Iterable[JsonObject] | None, field: str) -> list[str]:
    """Return the warnings about deprecated labels in expressions."""
    keys = [one.get("key") or "" for one in expressions or ()]
    return [
        f"{field}[{index}].key: {key} is {message}"
        for index, key in enumerate(keys)
        if (message := label_deprecation(key))
    ]
