"""Which type of the table a kind's objects are of."""

from __future__ import annotations

from functools import cache

from bayplan.embedded.apiserver.schema.types import ObjectType, find_type

_PACKAGES = {
    "": "core",
    "rbac.authorization.k8s.io": "rbac",
}


def package_of(group: str) -> str:
    """Under which name a group's types are kept."""
    return _PACKAGES.get(group) or group.partition(".")[0]


@cache
def root_type(group: str, kind: str) -> ObjectType | None:
    """The type of a built-in kind; None for kinds of which nothing is known."""
    return find_type(f"{package_of(group)}.{kind}")
