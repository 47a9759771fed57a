"""What a CustomResourceDefinition must be: its names, its conversion, and what of it stays."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.crds.versions import joined, version_problems
from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    forbidden_field,
    immutable,
    not_supported,
    required,
)
from bayplan.embedded.apiserver.validation.names import dns1035_label, subdomain

_BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_REVIEWS = ("v1", "v1beta1")
_APPROVAL = "api-approved.kubernetes.io"


def new_definition_problems(definition: JsonObject) -> list[Cause]:
    """What is wrong with a new definition's name; it stays, as do the names that it is made of."""
    spec, name = definition["spec"], definition["metadata"].get("name") or ""
    if name == f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}":
        return []
    return [bad_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def definition_problems(definition: JsonObject) -> list[Cause]:
    """What is wrong with a definition."""
    spec = definition["spec"]
    return [
        *_group_problems(spec.get("group") or ""),
        *_scope_problems(spec),
        *version_problems(spec),
        *_name_problems(spec["names"]),
        *_conversion_problems(spec),
        *_stored_problems(definition),
        *_approval_problems(definition),
        *_unknown_problems(spec),
    ]


def _group_problems(group: str) -> list[Cause]:
    if not group:
        return [required("spec.group")]
    if found := joined(subdomain, group, "spec.group"):
        return found
    if "." not in group:
        return [bad_value("spec.group", group, "should be a domain with at least one dot")]
    if group in _BUILTIN_GROUPS:
        return [bad_value("spec.group", group, "is one of the server's own groups")]
    return []


def _scope_problems(spec: JsonObject) -> list[Cause]:
    scope, choices = spec.get("scope") or "", ("Cluster", "Namespaced")
    if not scope:
        return [required("spec.scope")]
    return [] if scope in choices else [not_supported("spec.scope", scope, choices)]


def _name_problems(names: JsonObject) -> Iterator[Cause]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    for name in ("plural", "singular"):
        if names.get(name):
            yield from joined(dns1035_label, names[name], f"spec.names.{name}")
    for name in ("kind", "listKind"):
        if names.get(name) and (found := dns1035_label(names[name].lower())):
            why = f"may have mixed case, but should otherwise match: {','.join(found)}"
            yield bad_value(f"spec.names.{name}", names[name], why)
    yield from _listed_problems(names, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        why = "kind and listKind may not be the same"
        yield bad_value("spec.names.listKind", names["listKind"], why)
    yield from _listed_problems(names, "categories")


def _listed_problems(names: JsonObject, field: str) -> Iterator[Cause]:
    for index, name in enumerate(names.get(field) or ()):
        yield from joined(dns1035_label, name, f"spec.names.{field}[{index}]")


def _conversion_problems(spec: JsonObject) -> Iterator[Cause]:
    conversion = spec.get("conversion") or {}
    strategy, place = conversion.get("strategy") or "", "spec.conversion"
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy not in {"None", "Webhook"}:
        yield not_supported(f"{place}.strategy", strategy, ("None", "Webhook"))
    elif strategy == "None":
        why = "should not be set when strategy is not set to Webhook"
        for name, value in (("webhookClientConfig", client), ("conversionReviewVersions", reviews)):
            if value:
                yield forbidden_field(f"{place}.{name}", why)
    else:
        yield from _client_problems(client, f"{place}.webhookClientConfig")
        yield from _review_problems(reviews, f"{place}.conversionReviewVersions")
        if client is not None and reviews:
            why = "objects are converted by no webhook on this server"
            yield forbidden_field(f"{place}.strategy", why)


def _client_problems(client: JsonObject | None, field: str) -> Iterator[Cause]:
    if client is None:
        yield required(field, "required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield required(field, "exactly one of url or service is required")


def _review_problems(versions: list[str], field: str) -> Iterator[Cause]:
    if not versions:
        yield required(field)
        return
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield bad_value(f"{field}[{index}]", version, "duplicate version")
        else:
            yield from joined(dns1035_label, version, f"{field}[{index}]")
        seen.add(version)
    if not seen & set(_REVIEWS):
        yield bad_value(field, versions, f"must include at least one of {', '.join(_REVIEWS)}")


def _stored_problems(definition: JsonObject) -> Iterator[Cause]:
    """Every version in which objects may still be kept must stay."""
    stored: list[str] | None = (definition.get("status") or {}).get("storedVersions")
    versions, field = definition["spec"].get("versions") or (), "status.storedVersions"
    if not stored:
        yield bad_value(field, stored, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            why = f"must have the storage version {version.get('name')}"
            yield bad_value(field, stored, why)
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            why = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield bad_value(f"{field}[{index}]", name, why)


def _approval_problems(definition: JsonObject) -> list[Cause]:
    """Groups of the Kubernetes community are approved by it."""
    group = definition["spec"].get("group") or ""
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in {
        "k8s.io",
        "kubernetes.io",
    }:
        return []
    approval = (definition["metadata"].get("annotations") or {}).get(_APPROVAL)
    why = (
        f'protected groups must have approval annotation "{_APPROVAL}", see '
        "https://github.com/kubernetes/enhancements/pull/1111"
    )
    return [] if approval else [required(f"metadata.annotations[{_APPROVAL}]", why)]


def _unknown_problems(spec: JsonObject) -> list[Cause]:
    if not spec.get("preserveUnknownFields"):
        return []
    why = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead"
    )
    return [bad_value("spec.preserveUnknownFields", True, why)]


def definition_change_problems(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What of a definition must stay: what its objects are kept by."""
    return [
        immutable("spec." + ".".join(path), after)
        for path in (("scope",), ("names", "kind"), ("group",), ("names", "plural"))
        if (after := _at(new["spec"], path)) != _at(old["spec"], path)
    ]


def _at(spec: JsonObject, path: tuple[str, ...]) -> object:
    value: object = spec
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
