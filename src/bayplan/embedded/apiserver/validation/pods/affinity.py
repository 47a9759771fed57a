"""Which nodes and which other pods a pod wants near or far."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    label_value,
    name_problems,
    qualified_name,
    subdomain,
)
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.kube.names import is_label_value, is_qualified_name

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WITH_VALUES = ("In", "NotIn")
_OPERATOR = "not a valid selector operator"


def affinity_problems(affinity: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a pod's affinity."""
    found: list[Cause] = []
    if affinity.get("nodeAffinity"):
        found += _node_affinity_problems(affinity["nodeAffinity"], f"{at}.nodeAffinity")
    for name in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(name) or {}
        for index, term in enumerate(terms.get(REQUIRED) or ()):
            found += _pod_term_problems(term, f"{at}.{name}.{REQUIRED}[{index}]")
        for index, term in enumerate(terms.get(PREFERRED) or ()):
            place = f"{at}.{name}.{PREFERRED}[{index}]"
            found += _weight_problems(term, place)
            inner = term.get("podAffinityTerm") or {}
            found += _pod_term_problems(inner, f"{place}.podAffinityTerm")
    return found


def _weight_problems(term: JsonObject, at: str) -> list[Cause]:
    weight = term.get("weight") or 0
    if 1 <= weight <= 100:
        return []
    return [bad_value(f"{at}.weight", weight, "must be in the range 1-100")]


def _node_affinity_problems(affinity: JsonObject, at: str) -> list[Cause]:
    found: list[Cause] = []
    if affinity.get(REQUIRED) is not None:
        found += node_selector_problems(affinity[REQUIRED], f"{at}.{REQUIRED}")
    for index, term in enumerate(affinity.get(PREFERRED) or ()):
        place = f"{at}.{PREFERRED}[{index}]"
        found += _weight_problems(term, place)
        preference = term.get("preference") or {}
        found += node_term_problems(preference, f"{place}.preference", any_value=True)
    return found


def node_selector_problems(selector: JsonObject, at: str) -> list[Cause]:
    """What is wrong with a selector of nodes."""
    terms = selector.get("nodeSelectorTerms") or ()
    field = f"{at}.nodeSelectorTerms"
    if not terms:
        return [required(field, "must have at least one node selector term")]
    return [
        cause
        for index, term in enumerate(terms)
        for cause in node_term_problems(term, f"{field}[{index}]")
    ]


def node_term_problems(term: JsonObject, at: str, *, any_value: bool = False) -> list[Cause]:
    """What is wrong with one of a selector's alternatives."""
    found: list[Cause] = []
    for index, one in enumerate(term.get("matchExpressions") or ()):
        found += _label_problems(one, f"{at}.matchExpressions[{index}]", any_value)
    for index, one in enumerate(term.get("matchFields") or ()):
        found += _field_problems(one, f"{at}.matchFields[{index}]")
    return found


def _label_problems(requirement: JsonObject, at: str, any_value: bool) -> list[Cause]:
    found, key = _count_problems(requirement, at), requirement.get("key") or ""
    if not is_qualified_name(key):
        found += name_problems(qualified_name, key, f"{at}.key")
    for index, value in enumerate(() if any_value else requirement.get("values") or ()):
        if not is_label_value(value):
            found += name_problems(label_value, value, f"{at}.values[{index}]")
    return found


def _count_problems(requirement: JsonObject, at: str) -> list[Cause]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    if operator in _WITH_VALUES:
        why = "must be specified when `operator` is 'In' or 'NotIn'"
        return [] if values else [required(f"{at}.values", why)]
    if operator in ("Exists", "DoesNotExist"):
        why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
        return [forbidden_field(f"{at}.values", why)] if values else []
    if operator in ("Gt", "Lt"):
        why = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        return [] if len(values) == 1 else [required(f"{at}.values", why)]
    return [bad_value(f"{at}.operator", operator, _OPERATOR)]


def _field_problems(requirement: JsonObject, at: str) -> list[Cause]:
    operator, values = requirement.get("operator") or "", requirement.get("values") or ()
    found: list[Cause] = []
    if operator not in _WITH_VALUES:
        found.append(bad_value(f"{at}.operator", operator, _OPERATOR))
    elif len(values) != 1:
        why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(required(f"{at}.values", why))
    key = requirement.get("key") or ""
    if key != "metadata.name":
        return [*found, bad_value(f"{at}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        found += name_problems(subdomain, value, f"{at}.values[{index}]")
    return found


def _pod_term_problems(term: JsonObject, at: str) -> list[Cause]:
    found = selector_problems(term.get("labelSelector"), f"{at}.labelSelector")
    found += selector_problems(term.get("namespaceSelector"), f"{at}.namespaceSelector")
    for name in term.get("namespaces") or ():
        found += name_problems(dns_label, name, f"{at}.namespace")
    found += label_key_problems(term, at)
    key = term.get("topologyKey") or ""
    if not key:
        found.append(required(f"{at}.topologyKey", "can not be empty"))
    if not is_qualified_name(key):
        found += name_problems(qualified_name, key, f"{at}.topologyKey")
    return found


def label_key_problems(term: JsonObject, at: str) -> list[Cause]:
    """What is wrong with the keys whose values come from the pod's own labels."""
    alike, other = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    if not alike and not other:
        return []
    selector = term.get("labelSelector")
    found = _key_list_problems(alike, f"{at}.matchLabelKeys", selector)
    found += _key_list_problems(other, f"{at}.mismatchLabelKeys", selector)
    found += _selected_twice(alike, selector or {}, at)
    why = "exists in both matchLabelKeys and mismatchLabelKeys"
    return found + [
        bad_value(f"{at}.matchLabelKeys[{index}]", key, why)
        for index, key in enumerate(alike)
        if key in other
    ]


def _key_list_problems(keys: list[str], at: str, selector: JsonObject | None) -> list[Cause]:
    if keys and selector is None:
        return [forbidden_field(at, "must not be specified when labelSelector is not set")]
    return [
        cause
        for index, key in enumerate(keys)
        for cause in name_problems(qualified_name, key, f"{at}[{index}]")
    ]


def _selected_twice(keys: list[str], selector: JsonObject, at: str) -> list[Cause]:
    """A key stands in the selector once already, as it was put there from the pod's labels."""
    places = {key: index for index, key in enumerate(keys)}
    seen = set(selector.get("matchLabels") or ())
    found = []
    for one in selector.get("matchExpressions") or ():
        key = one.get("key") or ""
        if key in places and key in seen:
            why = "exists in both matchLabelKeys and labelSelector"
            found.append(bad_value(f"{at}[{places[key]}]", key, why))
        seen.add(key)
    return found
