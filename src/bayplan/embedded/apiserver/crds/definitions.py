"""A CustomResourceDefinition as kinds: one for each version that it serves."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.model import CustomSchema, Kind, PrinterColumn

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
STORAGE = "customresourcedefinitions.apiextensions.k8s.io"


def kinds_of(definition: JsonObject) -> tuple[Kind, ...]:
    """The kinds that a definition defines, the version that is kept first."""
    versions = definition["spec"]["versions"]
    kept = storage_version(definition)
    served = [one for one in versions if one.get("served")]
    served.sort(key=lambda one: one["name"] != kept)
    return tuple(_kind(definition["spec"], version, kept) for version in served)


def storage_version(definition: JsonObject) -> str:
    """The version in which objects are kept."""
    versions = definition["spec"]["versions"] or ()
    return next((str(one["name"]) for one in versions if one.get("storage")), "")


def _kind(spec: JsonObject, version: JsonObject, kept: str) -> Kind:
    names, subresources = spec["names"], version.get("subresources") or {}
    offered = [name for name in ("status", "scale") if subresources.get(name) is not None]
    return Kind(
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
