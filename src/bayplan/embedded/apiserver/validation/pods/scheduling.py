"""Validation of scheduling fields: affinity, tolerations, gates, topology spread."""

from __future__ import annotations

from collections import Counter

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import (
    dns_label,
    label_value,
    name_problems,
    qualified_name,
)
from bayplan.embedded.apiserver.validation.pods.choices import choice
from bayplan.embedded.apiserver.validation.selectors import (
    node_selector_problems,
    node_selector_term_problems,
    selector_problems,
)
from bayplan.kube.names import is_label_value, is_qualified_name

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def affinity_problems(affinity: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of a pod's affinity."""
    found: list[FieldCause] = []
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


def _weight_problems(term: JsonObject, at: str) -> list[FieldCause]:
    weight = term.get("weight") or 0
    if 1 <= weight <= 100:
        return []
    return [bad_value(f"{at}.weight", weight, "must be in the range 1-100")]


def _node_affinity_problems(affinity: JsonObject, at: str) -> list[FieldCause]:
    found: list[FieldCause] = []
    if affinity.get(REQUIRED) is not None:
        found += node_selector_problems(affinity[REQUIRED], f"{at}.{REQUIRED}")
    for index, term in enumerate(affinity.get(PREFERRED) or ()):
        place = f"{at}.{PREFERRED}[{index}]"
        found += _weight_problems(term, place)
        preference = term.get("preference") or {}
        found += node_selector_term_problems(preference, f"{place}.preference", any_value=True)
    return found


def _pod_term_problems(term: JsonObject, at: str) -> list[FieldCause]:
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


def label_key_problems(term: JsonObject, at: str) -> list[FieldCause]:
    """Return the problems of matchLabelKeys and mismatchLabelKeys."""
    alike, other = term.get("matchLabelKeys") or [], term.get("mismatchLabelKeys") or []
    if not alike and not other:
        return []
    selector = term.get("labelSelector")
    found = _key_list_problems(alike, f"{at}.matchLabelKeys", selector)
    found += _key_list_problems(other, f"{at}.mismatchLabelKeys", selector)
    found += _selected_twice(alike, selector or {}, at)
    detail = "exists in both matchLabelKeys and mismatchLabelKeys"
    return found + [
        bad_value(f"{at}.matchLabelKeys[{index}]", key, detail)
        for index, key in enumerate(alike)
        if key in other
    ]


def _key_list_problems(keys: list[str], at: str, selector: JsonObject | None) -> list[FieldCause]:
    if keys and selector is None:
        return [forbidden_field(at, "must not be specified when labelSelector is not set")]
    return [
        cause
        for index, key in enumerate(keys)
        for cause in name_problems(qualified_name, key, f"{at}[{index}]")
    ]


def _selected_twice(keys: list[str], selector: JsonObject, at: str) -> list[FieldCause]:
    """Return label keys that the label selector has more than once."""
    places = {key: index for index, key in enumerate(keys)}
    seen = set(selector.get("matchLabels") or ())
    found = []
    for one in selector.get("matchExpressions") or ():
        key = one.get("key") or ""
        if key in places and key in seen:
            detail = "exists in both matchLabelKeys and labelSelector"
            found.append(bad_value(f"{at}[{places[key]}]", key, detail))
        seen.add(key)
    return found


EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_POSITIVE = "must be greater than zero"
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_EVERYTHING = (
    'operator must be Exists when `key` is empty, which means "match all values and all keys"'
)


def gate_problems(gates: list[JsonObject], at: str) -> list[FieldCause]:
    """Return the problems of scheduling gates."""
    found: list[FieldCause] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name") or ""
        found += name_problems(qualified_name, name, f"{at}[{index}]")
        if name in seen:
            found.append(duplicate(f"{at}[{index}]", name))
        seen.add(name)
    return found


def toleration_problems(tolerations: list[JsonObject], at: str) -> list[FieldCause]:
    """Return the problems of tolerations."""
    found: list[FieldCause] = []
    for index, toleration in enumerate(tolerations):
        place, key = f"{at}[{index}]", toleration.get("key") or ""
        operator, effect = toleration.get("operator") or "", toleration.get("effect") or ""
        if key and not is_qualified_name(key):
            found += name_problems(qualified_name, key, f"{place}.key")
        if not key and operator != "Exists":
            found.append(bad_value(f"{place}.operator", operator, _EVERYTHING))
        if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(bad_value(f"{place}.effect", effect, detail))
        found += _operator_problems(operator, toleration.get("value") or "", f"{place}.operator")
        if effect and effect not in EFFECTS:
            found.append(not_supported(f"{place}.effect", effect, EFFECTS))
    return found


def _operator_problems(operator: str, value: str, at: str) -> list[FieldCause]:
    if operator in ("", "Equal"):
        return [] if is_label_value(value) else [bad_value(at, value, ";".join(label_value(value)))]
    if operator == "Exists":
        detail = "value must be empty when `operator` is 'Exists'"
        return [bad_value(at, value, detail)] if value else []
    known = ("Equal", "Exists")
    compared = ("Lt", "Gt")
    return [not_supported(at, operator, known + compared if operator in compared else known)]


def spread_problems(constraints: list[JsonObject], at: str) -> list[FieldCause]:
    """Return the problems of topology spread constraints."""
    found: list[FieldCause] = []
    left = Counter(map(_spread_key, constraints))
    for index, one in enumerate(constraints):
        left[_spread_key(one)] -= 1
        place, action = f"{at}[{index}]", one.get("whenUnsatisfiable") or ""
        if (one.get("maxSkew") or 0) <= 0:
            found.append(bad_value(f"{place}.maxSkew", one.get("maxSkew") or 0, _POSITIVE))
        if not one.get("topologyKey"):
            found.append(required(f"{place}.topologyKey", "can not be empty"))
        if action not in _ACTIONS:
            found.append(not_supported(f"{place}.whenUnsatisfiable", action, _ACTIONS))
        if left[_spread_key(one)]:
            field = f"{place}.{{topologyKey, whenUnsatisfiable}}"
            found.append(duplicate(field, f"{{{', '.join(_spread_key(one))}}}"))
        found += _domain_problems(one.get("minDomains"), action, f"{place}.minDomains")
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            found += choice(one.get(name), f"{place}.{name}", ("Honor", "Ignore"))
        found += label_key_problems(one, place)
        found += selector_problems(one.get("labelSelector"), f"{place}.labelSelector")
    return found


def _spread_key(constraint: JsonObject) -> tuple[str, str]:
    return constraint.get("topologyKey") or "", constraint.get("whenUnsatisfiable") or ""


def _domain_problems(least: int | None, action: str, at: str) -> list[FieldCause]:
    if least is None:
        return []
    found = [bad_value(at, least, _POSITIVE)] if least <= 0 else []
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        found.append(bad_value(at, least, detail))
    return found
