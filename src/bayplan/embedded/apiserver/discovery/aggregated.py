"""The aggregated discovery documents: everything that is served, in two answers."""

from __future__ import annotations

from bayplan.embedded.apiserver.discovery.legacy import SUBRESOURCE_KINDS
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import Kind

_LIST = "APIGroupDiscoveryList"
_VERSIONS = ("v2", "v2beta1")


def wanted_version(accept: bytes | None) -> str | None:
    """The version of aggregated discovery that a client prefers; None if it wants the old one."""
    for part in (accept or b"").decode("latin-1").split(","):
        pieces = {piece.strip() for piece in part.split(";")}
        if {"application/json", "g=apidiscovery.k8s.io", f"as={_LIST}"} <= pieces:
            for version in _VERSIONS:
                if f"v={version}" in pieces:
                    return version
    return None


def content_type(version: str) -> bytes:
    """The media type of an aggregated document."""
    return f"application/json;g=apidiscovery.k8s.io;v={version};as={_LIST}".encode()


def aggregated(catalog: Catalog, version: str, *, core: bool) -> JsonObject:
    """`/api` (core) or `/apis` (the rest), aggregated."""
    groups = {name: versions for name, versions in catalog.groups().items() if (name == "") == core}
    return {
        "kind": _LIST,
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_group(catalog, name, versions) for name, versions in groups.items()],
    }


def _group(catalog: Catalog, name: str, versions: list[str]) -> JsonObject:
    return {
        "metadata": {"name": name, "creationTimestamp": None} if name else {},
        "versions": [
            {
                "version": version,
                "freshness": "Current",
                "resources": [
                    _resource(kind)
                    for kind in catalog
                    if (kind.group, kind.version) == (name, version)
                ],
            }
            for version in versions
        ],
    }


def _kind(group: str, version: str, kind: str) -> JsonObject:
    return {"group": group, "version": version, "kind": kind}


def _resource(kind: Kind) -> JsonObject:
    own = _kind(kind.group, kind.version, kind.kind)
    described: JsonObject = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "subresources": [_subresource(name, own) for name in kind.subresources],
    }
    return {key: value for key, value in described.items() if value != []}


def _subresource(name: str, own: JsonObject) -> JsonObject:
    verbs: tuple[str, ...] = ("get", "patch", "update")
    if name in SUBRESOURCE_KINDS:
        group, version, kind, verbs = SUBRESOURCE_KINDS[name]
        own = _kind(group, version, kind)
    return {"subresource": name, "responseKind": own, "verbs": list(verbs)}
