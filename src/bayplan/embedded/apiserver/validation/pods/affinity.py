"""Which nodes and which other pods a pod wants near or far."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import bad_value, forbidden_field, required
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    name_problems,
    qualified_name,
)
from bayplan.embedded.apiserver.validation.nodeselectors import (
    node_selector_problems,
    node_selector_term_problems,
)
from bayplan.embedded.apiserver.validation.selectors import selector_problems
from bayplan.kube.names import is_qualified_name

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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
        found += node_selector_term_problems(preference, f"{place}.preference", any_value=True)
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
