"""How a kind is served: its names, scope, subresources and selectable fields."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.embedded.apiserver.errors import group_resource
from bayplan.embedded.apiserver.jsontypes import JsonObject

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`, read by a JSON path."""

    name: str
    type: str
    path: str
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class CustomSchema:
    """Schema, columns and scale of a CRD's version."""

    storage_version: str
    schema: JsonObject | None = None
    """The version's `openAPIV3Schema`; None if it preserves everything."""
    scale: dict[str, str] | None = None
    columns: tuple[PrinterColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class ServedKind:
    """One kind in one version, as served."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    namespaced: bool = True
    subresources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    """Field paths, beyond name and namespace, that a field selector may use."""
    verbs: tuple[str, ...] = ALL_VERBS
    list_kind: str = ""
    storage: str = ""
    """The storage name; versions of a kind, and converted kinds, share one."""
    custom: CustomSchema | None = None
    generations: bool = False
    """Whether a change of the spec increments `metadata.generation`."""
    conditional: bool = False
    """Whether updates must have a resource version."""
    resource: str = field(init=False, default="")
    api_version: str = field(init=False, default="")

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "resource", group_resource(self.group, self.plural))
        put(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        put(self, "singular", self.singular or self.kind.lower())
        put(self, "list_kind", self.list_kind or f"{self.kind}List")
        put(self, "storage", self.storage or self.resource)

    @property
    def has_status(self) -> bool:
        """Return whether there is a status subresource."""
        return "status" in self.subresources
