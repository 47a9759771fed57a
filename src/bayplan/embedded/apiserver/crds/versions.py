"""What the versions of a definition must be: schema, subresources, columns, selectable fields."""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.embedded.apiserver.crds.schemas import version_schema_problems
from bayplan.embedded.apiserver.crds.structure import parts
from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.schema.internal import internal_form
from bayplan.embedded.apiserver.validation.causes import (
    bad_value,
    duplicate,
    required,
    too_many,
)
from bayplan.embedded.apiserver.validation.names import NameRule, dns1035_label

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_WARNING_LENGTH = 256


def joined(rule: NameRule, text: str, field: str, head: str = "") -> list[Cause]:
    """All that a rule says, as one complaint."""
    found = rule(text)
    return [bad_value(field, text, head + ",".join(found))] if found else []


def version_problems(spec: JsonObject) -> Iterator[Cause]:
    """What is wrong with the versions of a definition."""
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
        why = "must have exactly one version marked as storage version"
        yield bad_value("spec.versions", shown or None, why)
    if versions and names[0]:
        yield from joined(dns1035_label, names[0], "spec.version")


def _one_version_problems(version: JsonObject, field: str) -> Iterator[Cause]:
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


def _deprecation_problems(version: JsonObject, field: str) -> Iterator[Cause]:
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
            why = f"must only contain printable UTF-8 characters; {what}"
            yield bad_value(field, warning, why)
            return


def _scale_problems(scale: JsonObject, field: str) -> Iterator[Cause]:
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path, place = scale.get(name) or "", f"{field}.{name}"
        if not path:
            yield required(place)
        else:
            why = f"should be a json path under {root}"
            yield from _path_problems(path, place, (f"{root}.",), why)
    path = scale.get("labelSelectorPath") or ""
    if path:
        why = "should be a json path under either .spec or .status"
        place = f"{field}.labelSelectorPath"
        yield from _path_problems(path, place, (".spec.", ".status."), why)


def _path_problems(path: str, field: str, roots: tuple[str, ...], why: str) -> Iterator[Cause]:
    if not path.startswith("."):
        yield bad_value(field, path, "must be a simple json path starting with .")
    elif not path.startswith(roots):
        yield bad_value(field, path, why)


def _column_problems(column: JsonObject, field: str) -> Iterator[Cause]:
    kind, path, form = (column.get(name) or "" for name in ("type", "jsonPath", "format"))
    if not column.get("name"):
        yield required(f"{field}.name")
    why = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield required(f"{field}.type", why)
    elif kind not in _COLUMN_TYPES:
        yield bad_value(f"{field}.type", kind, why)
    if form and form not in _COLUMN_FORMATS:
        why = f"must be one of {','.join(_COLUMN_FORMATS)}"
        yield bad_value(f"{field}.format", form, why)
    if not path:
        yield required(f"{field}.JSONPath")
    else:
        yield from _path_problems(path, f"{field}.JSONPath", (".",), "")


def _selectable_problems(version: JsonObject, field: str) -> Iterator[Cause]:
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
            why = (
                "must point to a field of type string, boolean or integer. Enum string fields and "
                "strings with formats are allowed."
            )
            yield bad_value(place, path, why)
        if path in seen:
            yield duplicate(place, path)
        seen.add(path)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many(field, len(seen), _MOST_SELECTABLE)


def _schema_at(schema: JsonObject, path: str) -> JsonObject | str:
    """The schema of the field that a path leads to, or why it leads to none."""
    if not path.startswith("."):
        first = path.partition(".")[0]
        return f"expected [ or . but got: {first}"
    for name in path[1:].split("."):
        inner = (schema.get("properties") or {}).get(name)
        if inner is None:
            return "does not refer to a valid field"
        schema = inner
    return schema


def _default_problems(spec: JsonObject) -> list[Cause]:
    """Without pruning, a default could not be told from what is not known."""
    schemas = [_schema(version) or {} for version in spec.get("versions") or ()]
    if not spec.get("preserveUnknownFields") or not any(map(_has_default, schemas)):
        return []
    why = "must be false in order to use defaults in the schema"
    return [bad_value("spec.preserveUnknownFields", True, why)]


def _has_default(schema: JsonObject) -> bool:
    return schema.get("default") is not None or any(_has_default(one) for _, one in parts(schema))


def _schema(version: JsonObject) -> JsonObject | None:
    schema: JsonObject | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema
