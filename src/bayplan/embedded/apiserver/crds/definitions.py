"""The kinds of a CustomResourceDefinition, one for each version, and their scale."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import FieldCause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, encode
from bayplan.embedded.apiserver.kinds.model import CustomSchema, PrinterColumn, ServedKind
from bayplan.embedded.apiserver.validation.causes import bad_value

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def kinds_of(definition: JsonObject) -> tuple[ServedKind, ...]:
    """Return the kinds of a definition, the storage version first."""
    versions = definition["spec"]["versions"]
    kept = storage_version(definition)
    served = [one for one in versions if one.get("served")]
    served.sort(key=lambda one: one["name"] != kept)
    return tuple(_kind(definition["spec"], version, kept) for version in served)


def storage_version(definition: JsonObject) -> str:
    """Return the storage version."""
    versions = definition["spec"]["versions"] or ()
    return next((str(one["name"]) for one in versions if one.get("storage")), "")


def _kind(spec: JsonObject, version: JsonObject, kept: str) -> ServedKind:
    names, subresources = spec["names"], version.get("subresources") or {}
    offered = [name for name in ("status", "scale") if subresources.get(name) is not None]
    return ServedKind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        names.get("singular") or "",
        tuple(names.get("shortNames") or ()),
        spec.get("scope") == "Namespaced",
        tuple(offered),
        tuple(names.get("categories") or ()),
        tuple(_selectable(version)),
        list_kind=names.get("listKind") or "",
        conditional=True,
        custom=CustomSchema(
            storage_version=kept,
            schema=(version.get("schema") or {}).get("openAPIV3Schema"),
            scale=subresources.get("scale"),
            columns=tuple(map(_column, version.get("additionalPrinterColumns") or ())),
        ),
        verbs=_VERBS,
        generations=True,
    )


def _selectable(version: JsonObject) -> list[str]:
    return [one["jsonPath"].lstrip(".") for one in version.get("selectableFields") or ()]


def _column(column: JsonObject) -> PrinterColumn:
    return PrinterColumn(
        column.get("name", ""),
        column.get("type", "string"),
        column.get("jsonPath", ""),
        column.get("priority") or 0,
        column.get("format") or "",
        column.get("description") or "",
    )


_MAX_INT32 = 2**31 - 1
_MAP = "map[string]interface{}"
_GO_TYPES = {
    dict: _MAP,
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    float: "float64",
    int: "int64",
    type(None): "<nil>",
}


def scale_problems(obj: JsonObject, scale: dict[str, str]) -> list[FieldCause]:
    """Return the problems of the replica counts that the scale subresource reads."""
    found: list[FieldCause] = []
    for name in ("specReplicasPath", "statusReplicasPath"):
        found += _replicas_problems(obj, scale.get(name) or "")
    return found


def _replicas_problems(obj: JsonObject, path: str) -> list[FieldCause]:
    value: JsonValue = obj
    for name in path.lstrip(".").split("."):
        if not isinstance(value, dict):
            return [bad_value(path, 0, _mismatch(path, value, _MAP))]
        if name not in value:
            return []
        value = value[name]
    if type(value) is not int:
        return [bad_value(path, 0, _mismatch(path, value, "int64"))]
    if value < 0:
        return [bad_value(path, value, "should be a non-negative integer")]
    return (
        [bad_value(path, value, f"should be less than or equal to {_MAX_INT32}")]
        if value > _MAX_INT32
        else []
    )


def _mismatch(path: str, value: JsonValue, wanted: str) -> str:
    shown = value if isinstance(value, str) else encode(value).decode()
    return (
        f"{path} accessor error: {shown} is of the type {_GO_TYPES[type(value)]}, expected {wanted}"
    )
