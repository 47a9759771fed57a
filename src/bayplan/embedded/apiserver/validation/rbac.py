"""Validation of roles and their bindings."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import bad_value, not_supported, required
from bayplan.embedded.apiserver.validation.names import name_problems, path_segment, subdomain
from bayplan.embedded.apiserver.validation.selectors import selector_problems

GROUP = "rbac.authorization.k8s.io"
_SUBJECTS = ("ServiceAccount", "User", "Group")


def role_problems(role: JsonObject) -> list[FieldCause]:
    """Return the problems of a Role."""
    return _rule_list_problems(role, namespaced=True)


def cluster_role_problems(role: JsonObject) -> list[FieldCause]:
    """Return the problems of a ClusterRole."""
    found, field = (
        _rule_list_problems(role, namespaced=False),
        "aggregationRule.clusterRoleSelectors",
    )
    if role.get("aggregationRule") is None:
        return found
    selectors = role["aggregationRule"].get("clusterRoleSelectors") or ()
    if not selectors:
        detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
        found.append(required(field, detail))
    for index, selector in enumerate(selectors):
        problems = selector_problems(selector, f"{field}[{index}]")
        found += problems
        if problems:
            found.append(bad_value(f"{field}[{index}]", None, "invalid label selector."))
    return found


def _rule_list_problems(role: JsonObject, *, namespaced: bool) -> list[FieldCause]:
    found: list[FieldCause] = []
    for index, rule in enumerate(role.get("rules") or ()):
        found += _rule_problems(rule, f"rules[{index}]", namespaced=namespaced)
    return found


def _rule_problems(rule: JsonObject, field: str, *, namespaced: bool) -> list[FieldCause]:
    found: list[FieldCause] = []
    if not rule.get("verbs"):
        found.append(required(f"{field}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs")
    if urls:
        return found + _url_problems(rule, f"{field}.nonResourceURLs", namespaced=namespaced)
    if not rule.get("apiGroups"):
        detail = "resource rules must supply at least one api group"
        found.append(required(f"{field}.apiGroups", detail))
    if not rule.get("resources"):
        detail = "resource rules must supply at least one resource"
        found.append(required(f"{field}.resources", detail))
    return found


def _url_problems(rule: JsonObject, field: str, *, namespaced: bool) -> list[FieldCause]:
    urls, found = rule["nonResourceURLs"], list[FieldCause]()
    if namespaced:
        detail = "namespaced rules cannot apply to non-resource URLs"
        found.append(bad_value(field, urls, detail))
    if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
        detail = "rules cannot apply to both regular resources and non-resource URLs"
        found.append(bad_value(field, urls, detail))
    return found


def binding_problems(binding: JsonObject) -> list[FieldCause]:
    """Return the problems of a RoleBinding."""
    return _binding_problems(binding, ("Role", "ClusterRole"), namespaced=True)


def cluster_binding_problems(binding: JsonObject) -> list[FieldCause]:
    """Return the problems of a ClusterRoleBinding."""
    return _binding_problems(binding, ("ClusterRole",), namespaced=False)


def _binding_problems(
    binding: JsonObject, kinds: tuple[str, ...], *, namespaced: bool
) -> list[FieldCause]:
    role, found = binding.get("roleRef") or {}, list[FieldCause]()
    group, kind, name = (role.get(field) or "" for field in ("apiGroup", "kind", "name"))
    if group != GROUP:
        found.append(not_supported("roleRef.apiGroup", group, (GROUP,)))
    if kind not in kinds:
        found.append(not_supported("roleRef.kind", kind, kinds))
    found += (
        name_problems(path_segment, name, "roleRef.name") if name else [required("roleRef.name")]
    )
    for index, subject in enumerate(binding.get("subjects") or ()):
        found += _subject_problems(subject, f"subjects[{index}]", namespaced=namespaced)
    return found


def _subject_problems(subject: JsonObject, field: str, *, namespaced: bool) -> list[FieldCause]:
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    group, found = subject.get("apiGroup") or "", list[FieldCause]()
    if not name:
        found.append(required(f"{field}.name"))
    if kind not in _SUBJECTS:
        return [*found, not_supported(f"{field}.kind", kind, _SUBJECTS)]
    wanted = "" if kind == "ServiceAccount" else GROUP
    if kind == "ServiceAccount" and name:
        found += name_problems(subdomain, name, f"{field}.name")
    if group != wanted:
        found.append(not_supported(f"{field}.apiGroup", group, (wanted,)))
    if kind == "ServiceAccount" and not namespaced and not subject.get("namespace"):
        found.append(required(f"{field}.namespace"))
    return found


def binding_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Refuse a change of a binding's role reference."""
    if new.get("roleRef") == old.get("roleRef"):
        return []
    shown = internal_form(new.get("roleRef") or {}, "rbac.RoleRef")
    return [bad_value("roleRef", shown, "cannot change roleRef")]
