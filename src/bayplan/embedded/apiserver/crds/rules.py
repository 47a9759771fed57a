"""Validation of CustomResourceDefinitions: names, conversion, versions, immutable fields."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.crds.schemas import version_schema_problems
from bayplan.embedded.apiserver.crds.structure import parts
from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    forbidden_field,
    immutable,
    not_supported,
    required,
    too_many,
)
from bayplan.embedded.apiserver.validation.names import NameRule, dns1035_label, subdomain

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MAX_SELECTABLE = 8
_WARNING_LENGTH = 256


def joined(rule: NameRule, text: str, field: str, head: str = "") -> list[FieldCause]:
    """Return all messages of a rule as one problem."""
    found = rule(text)
    return [bad_value(field, text, head + ",".join(found))] if found else []


def version_problems(spec: JsonObject) -> Iterator[FieldCause]:
    """Return the problems of the versions of a definition."""
    yield from _default_problems(spec)
    versions = spec.get("versions") or []
    for index, version in enumerate(versions):
        if _schema(version) is None:
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        field = f"spec.versions[{index}]"
        yield from joined(dns1035_label, version.get("name") or "", f"{field}.name")
        yield from _one_version_problems(version, field)
    shown = [
        internal_form(one, "apiextensions.CustomResourceDefinitionVersion") for one in versions
    ]
    names = [version.get("name") for version in versions]
    if len(set(names)) < len(names):
        yield bad_value("spec.versions", shown, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield bad_value("spec.versions", shown or None, detail)
    if versions and names[0]:
        yield from joined(dns1035_label, names[0], "spec.version")


def _one_version_problems(version: JsonObject, field: str) -> Iterator[FieldCause]:
    subresources, schema = version.get("subresources") or {}, _schema(version)
    yield from _deprecation_problems(version, f"{field}.deprecationWarning")
    if schema is not None:
        has_status = subresources.get("status") is not None
        place = f"{field}.schema.openAPIV3Schema"
        yield from version_schema_problems(schema, place, has_status=has_status)
    if subresources.get("scale") is not None:
        yield from _scale_problems(subresources["scale"], f"{field}.subresources.scale")
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column_problems(column, f"{field}.additionalPrinterColumns[{index}]")
    yield from _selectable_problems(version, f"{field}.selectableFields")


def _deprecation_problems(version: JsonObject, field: str) -> Iterator[FieldCause]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield bad_value(field, warning, "can only be set for deprecated versions")
        return
    if len(warning.encode()) > _WARNING_LENGTH:
        yield bad_value(field, warning, f"must be <= {_WARNING_LENGTH} characters long")
    if not warning:
        yield bad_value(field, warning, "must not be an empty string")
    for index, letter in enumerate(warning):
        if not letter.isprintable():
            what = f"non-printable character found at index {index}"
            detail = f"must only contain printable UTF-8 characters; {what}"
            yield bad_value(field, warning, detail)
            return


def _scale_problems(scale: JsonObject, field: str) -> Iterator[FieldCause]:
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path, place = scale.get(name) or "", f"{field}.{name}"
        if not path:
            yield required(place)
        else:
            detail = f"should be a json path under {root}"
            yield from _path_problems(path, place, (f"{root}.",), detail)
    path = scale.get("labelSelectorPath") or ""
    if path:
        detail = "should be a json path under either .spec or .status"
        place = f"{field}.labelSelectorPath"
        yield from _path_problems(path, place, (".spec.", ".status."), detail)


def _path_problems(
    path: str, field: str, roots: tuple[str, ...], detail: str
) -> Iterator[FieldCause]:
    if not path.startswith("."):
        yield bad_value(field, path, "must be a simple json path starting with .")
    elif not path.startswith(roots):
        yield bad_value(field, path, detail)


def _column_problems(column: JsonObject, field: str) -> Iterator[FieldCause]:
    kind, path, form = (column.get(name) or "" for name in ("type", "jsonPath", "format"))
    if not column.get("name"):
        yield required(f"{field}.name")
    detail = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield required(f"{field}.type", detail)
    elif kind not in _COLUMN_TYPES:
        yield bad_value(f"{field}.type", kind, detail)
    if form and form not in _COLUMN_FORMATS:
        detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
        yield bad_value(f"{field}.format", form, detail)
    if not path:
        yield required(f"{field}.JSONPath")
    else:
        yield from _path_problems(path, f"{field}.JSONPath", (".",), "")


def _selectable_problems(version: JsonObject, field: str) -> Iterator[FieldCause]:
    seen: set[str] = set()
    for index, one in enumerate(version.get("selectableFields") or ()):
        path, place = one.get("jsonPath") or "", f"{field}[{index}].jsonPath"
        if not path:
            yield required(place)
            continue
        found = _schema_at(_schema(version) or {}, path)
        if isinstance(found, str):
            yield bad_value(place, path, f"is an invalid path: {found}")
            continue
        if path.lstrip(".").partition(".")[0] == "metadata":
            yield bad_value(place, path, "must not point to fields in metadata")
        if found.get("type") not in {"string", "boolean", "integer"}:
            detail = (
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed."
            )
            yield bad_value(place, path, detail)
        if path in seen:
            yield duplicate(place, path)
        seen.add(path)
    if len(seen) > _MAX_SELECTABLE:
        yield too_many(field, len(seen), _MAX_SELECTABLE)


def _schema_at(schema: JsonObject, path: str) -> JsonObject | str:
    """Return the schema of the field at a path, or why there is none."""
    if not path.startswith("."):
        first = path.partition(".")[0]
        return f"expected [ or . but got: {first}"
    for name in path[1:].split("."):
        inner = (schema.get("properties") or {}).get(name)
        if inner is None:
            return "does not refer to a valid field"
        schema = inner
    return schema


def _default_problems(spec: JsonObject) -> list[FieldCause]:
    """Refuse defaults in a schema that does not prune unknown fields."""
    schemas = [_schema(version) or {} for version in spec.get("versions") or ()]
    if not spec.get("preserveUnknownFields") or not any(map(_has_default, schemas)):
        return []
    detail = "must be false in order to use defaults in the schema"
    return [bad_value("spec.preserveUnknownFields", True, detail)]


def _has_default(schema: JsonObject) -> bool:
    return schema.get("default") is not None or any(_has_default(one) for _, one in parts(schema))


def _schema(version: JsonObject) -> JsonObject | None:
    schema: JsonObject | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema


_BUILTIN_GROUPS = frozenset(kind.group for kind in BUILTIN)
_REVIEWS = ("v1", "v1beta1")
_APPROVAL = "api-approved.kubernetes.io"


def new_definition_problems(definition: JsonObject) -> list[FieldCause]:
    """Return the problems of a new definition's name, which is immutable."""
    spec, name = definition["spec"], definition["metadata"].get("name") or ""
    if name == f"{spec['names'].get('plural') or ''}.{spec.get('group') or ''}":
        return []
    return [bad_value("metadata.name", name, 'must be spec.names.plural+"."+spec.group')]


def definition_problems(definition: JsonObject) -> list[FieldCause]:
    """Return the problems of a definition."""
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


def _group_problems(group: str) -> list[FieldCause]:
    if not group:
        return [required("spec.group")]
    if found := joined(subdomain, group, "spec.group"):
        return found
    if "." not in group:
        return [bad_value("spec.group", group, "should be a domain with at least one dot")]
    if group in _BUILTIN_GROUPS:
        return [bad_value("spec.group", group, "is one of the server's own groups")]
    return []


def _scope_problems(spec: JsonObject) -> list[FieldCause]:
    scope, choices = spec.get("scope") or "", ("Cluster", "Namespaced")
    if not scope:
        return [required("spec.scope")]
    return [] if scope in choices else [not_supported("spec.scope", scope, choices)]


def _name_problems(names: JsonObject) -> Iterator[FieldCause]:
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    for name in ("plural", "singular"):
        if names.get(name):
            yield from joined(dns1035_label, names[name], f"spec.names.{name}")
    for name in ("kind", "listKind"):
        if names.get(name) and (found := dns1035_label(names[name].lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(found)}"
            yield bad_value(f"spec.names.{name}", names[name], detail)
    yield from _listed_problems(names, "shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        detail = "kind and listKind may not be the same"
        yield bad_value("spec.names.listKind", names["listKind"], detail)
    yield from _listed_problems(names, "categories")


def _listed_problems(names: JsonObject, field: str) -> Iterator[FieldCause]:
    for index, name in enumerate(names.get(field) or ()):
        yield from joined(dns1035_label, name, f"spec.names.{field}[{index}]")


def _conversion_problems(spec: JsonObject) -> Iterator[FieldCause]:
    conversion = spec.get("conversion") or {}
    strategy, place = conversion.get("strategy") or "", "spec.conversion"
    webhook = conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy not in {"None", "Webhook"}:
        yield not_supported(f"{place}.strategy", strategy, ("None", "Webhook"))
    elif strategy == "None":
        detail = "should not be set when strategy is not set to Webhook"
        for name, value in (("webhookClientConfig", client), ("conversionReviewVersions", reviews)):
            if value:
                yield forbidden_field(f"{place}.{name}", detail)
    else:
        yield from _client_problems(client, f"{place}.webhookClientConfig")
        yield from _review_problems(reviews, f"{place}.conversionReviewVersions")
        if client is not None and reviews:
            detail = "objects are converted by no webhook on this server"
            yield forbidden_field(f"{place}.strategy", detail)


def _client_problems(client: JsonObject | None, field: str) -> Iterator[FieldCause]:
    if client is None:
        yield required(field, "required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield required(field, "exactly one of url or service is required")


def _review_problems(versions: list[str], field: str) -> Iterator[FieldCause]:
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


def _stored_problems(definition: JsonObject) -> Iterator[FieldCause]:
    """Return stored versions that the definition no longer has."""
    stored: list[str] | None = (definition.get("status") or {}).get("storedVersions")
    versions, field = definition["spec"].get("versions") or (), "status.storedVersions"
    if not stored:
        yield bad_value(field, stored, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            detail = f"must have the storage version {version.get('name')}"
            yield bad_value(field, stored, detail)
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            yield bad_value(f"{field}[{index}]", name, detail)


def _approval_problems(definition: JsonObject) -> list[FieldCause]:
    """Require the approval annotation for `*.k8s.io` groups."""
    group = definition["spec"].get("group") or ""
    if not group.endswith((".k8s.io", ".kubernetes.io")) and group not in {
        "k8s.io",
        "kubernetes.io",
    }:
        return []
    approval = (definition["metadata"].get("annotations") or {}).get(_APPROVAL)
    detail = (
        f'protected groups must have approval annotation "{_APPROVAL}", see '
        "https://github.com/kubernetes/enhancements/pull/1111"
    )
    return [] if approval else [required(f"metadata.annotations[{_APPROVAL}]", detail)]


def _unknown_problems(spec: JsonObject) -> list[FieldCause]:
    if not spec.get("preserveUnknownFields"):
        return []
    detail = (
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
        "spec.versions[*].schema instead"
    )
    return [bad_value("spec.preserveUnknownFields", True, detail)]


def definition_change_problems(new: JsonObject, old: JsonObject) -> list[FieldCause]:
    """Return the problems of a change of a definition: immutable fields."""
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
