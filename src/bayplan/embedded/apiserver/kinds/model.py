"""What the server knows of a kind: its names, its scope, its subresources and what can be selected
by."""

from __future__ import annotations

from dataclasses import dataclass, field

from bayplan.embedded.apiserver.errors import group_resource
from bayplan.embedded.apiserver.jsontypes import JsonObject

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of `kubectl get`, found by a JSON path."""

    name: str
    type: str
    path: str
    priority: int = 0
    format: str = ""
    description: str = ""


@dataclass(frozen=True, slots=True)
class CustomSchema:
    """What a CRD says about its objects."""

    storage_version: str
    schema: JsonObject | None = None
    """The version's `openAPIV3Schema`; None for one that keeps everything."""
    scale: dict[str, str] | None = None
    columns: tuple[PrinterColumn, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
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
    """Field paths, beyond name and namespace, that a field selector may name."""
    verbs: tuple[str, ...] = ALL_VERBS
    list_kind: str = ""
    storage: str = ""
    """Where objects are kept; versions of one kind, and views of it, share one place."""
    custom: CustomSchema | None = None
    generations: bool = False
    """Whether a change of the spec counts up `metadata.generation`."""
    conditional: bool = False
    """Whether whoever changes an object must say which version of it was changed."""
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
        """Whether status is written apart from the rest."""
        return "status" in self.subresources
