"""API resources: group, version, plural, scope, and the type that objects decode into.

Every request names its `Resource`. Typed kinds have theirs in a table (`resource_of(Pod)`). For
others, such as custom resources, make one by hand or let `Client.discover` ask the server; their
objects are plain dictionaries.

Typed objects hold the fields that Bayplan reads and drop the rest, so updating from one would erase
the dropped fields. Only resources with `has_all_fields`, whose types have every field, can be
updated from a typed object; the others are patched, or read and updated as dictionaries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Generic, TypeVar, cast
from urllib.parse import quote

from bayplan.kube.codec import KINDS, Kind
from bayplan.kube.coordination import Lease
from bayplan.kube.events import Event
from bayplan.kube.kinds import names_of
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.secrets import ServiceAccount

Untyped = dict[str, object]
"""An object as plain JSON."""
T = TypeVar("T", bound=KubeObject | Untyped)
K = TypeVar("K", bound=KubeObject)
T_co = TypeVar("T_co", bound=KubeObject | Untyped, covariant=True)


@dataclass(frozen=True, slots=True)
class Resource(Generic[T_co]):
    """A kind of object, its path in the API, and the type it decodes into."""

    type: type[T_co]
    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    has_all_fields: bool = False
    typed_kind: Kind | None = field(init=False, default=None, compare=False, repr=False)
    """The kind for the codec; None if objects are dictionaries."""

    def __post_init__(self) -> None:
        if issubclass(self.type, KubeObject):
            kind = Kind(self.type, self.group, self.version, self.namespaced)
            object.__setattr__(self, "typed_kind", kind)

    @property
    def api_version(self) -> str:
        """`group/version`, or just the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def root(self) -> str:
        """The path of the group and version."""
        return f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Return the path of an object, a subresource or (without a name) the collection."""
        parts = [self.root]
        if namespace:
            parts += ["namespaces", _segment(namespace)]
        parts.append(self.plural)
        parts += [_segment(part) for part in (name, subresource) if part]
        return "/".join(parts)

    def namespace_and_name(self, key: tuple[str, ...]) -> tuple[str, str]:
        """Return namespace and name of `(namespace, name)` or, cluster-scoped, `(name,)`."""
        expected = ("namespace", "name") if self.namespaced else ("name",)
        if len(key) != len(expected) or not all(key):
            raise ValueError(f"a {self.kind} is named by {' and '.join(expected)}, not by {key!r}")
        return (key[0], key[1]) if self.namespaced else ("", key[0])

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural


def untyped(
    group: str, version: str, plural: str, kind: str, *, namespaced: bool = True
) -> Resource[Untyped]:
    """Return a resource whose objects are dictionaries."""
    return Resource(dict, group, version, plural, kind, namespaced, has_all_fields=True)


_PLAIN = re.compile(r"[A-Za-z0-9_.~-]+")
"""Characters that need no quoting in a path; checking them first is faster."""


def _segment(part: str) -> str:
    if part in {".", ".."}:
        raise ValueError(f"{part!r} cannot be the name of an object")
    return part if _PLAIN.fullmatch(part) else quote(part, safe="")


def typed(kind: type[K], group: str | None = None, *, has_all_fields: bool = False) -> Resource[K]:
    """Return the resource whose objects decode into a type, which has the kind's name."""
    group, version, name, plural, namespaced = names_of(kind.__name__, group)
    return Resource(kind, group, version, plural, name, namespaced, has_all_fields)


def untyped_kind(kind: str, group: str | None = None) -> Resource[Untyped]:
    """Return the resource of a built-in kind, its objects as dictionaries."""
    group, version, name, plural, namespaced = names_of(kind, group)
    return untyped(group, version, plural, name, namespaced=namespaced)


PODS = typed(Pod)
SERVICE_ACCOUNTS = typed(ServiceAccount)
LEASES = typed(Lease, has_all_fields=True)
EVENTS = typed(Event, "events.k8s.io", has_all_fields=True)
CONFIG_MAPS = untyped_kind("ConfigMap")

_TABLE: tuple[Resource[KubeObject], ...] = (
    *(typed(kind.type) for kind in KINDS.values()),
    PODS,
    LEASES,
    EVENTS,
)
_BY_TYPE: dict[type[object], Resource[KubeObject]] = {row.type: row for row in _TABLE}
_BY_KIND = {(row.api_version, row.kind): row for row in _TABLE}


def resource_of(kind: type[T] | Resource[T]) -> Resource[T]:
    """Return the resource of a typed kind; a resource is returned as it is."""
    if isinstance(kind, Resource):
        return kind
    found = _BY_TYPE.get(kind)
    if found is None:
        raise TypeError(f"{kind.__name__} is not a typed kind; pass its Resource instead")
    return cast("Resource[T]", found)


def known_untyped(api_version: str, kind: str) -> Resource[Untyped] | None:
    """Return the untyped resource of a kind that also has a type."""
    row = _BY_KIND.get((api_version, kind))
    if row is None:
        return None
    return untyped(row.group, row.version, row.plural, row.kind, namespaced=row.namespaced)
