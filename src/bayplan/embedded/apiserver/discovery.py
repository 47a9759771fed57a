"""Discovery documents, legacy and aggregated."""

from __future__ import annotations

import base64
import hashlib
import platform
from collections.abc import Iterable

from bayplan.embedded.apiserver.errors import no_such_path
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import ServedKind

MAJOR, MINOR = "1", "36"
_OURS = "+bayplan"


def version_info() -> JsonObject:
    """Return the document of `/version`."""
    release = f"v{MAJOR}.{MINOR}.0"
    return {
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": f"{release}{_OURS}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }


def is_embedded(git_version: str) -> bool:
    """Return whether a git version is that of an embedded server."""
    return git_version.endswith(_OURS)


SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
"""Subresources whose objects have another kind than the resource."""


def api_versions(url_host: str) -> JsonObject:
    """Return `/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": url_host}],
    }


def _group(name: str, versions: Iterable[str]) -> JsonObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def api_groups(catalog: Catalog) -> JsonObject:
    """Return `/apis`."""
    groups = [_group(name, versions) for name, versions in catalog.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(catalog: Catalog, name: str) -> JsonObject:
    """Return `/apis/<group>`."""
    versions = catalog.groups().get(name)
    if not versions or not name:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def api_resources(catalog: Catalog, group: str, version: str) -> JsonObject:
    """Return `/api/v1` or `/apis/<group>/<version>`."""
    kinds = [kind for kind in catalog if (kind.group, kind.version) == (group, version)]
    if not kinds:
        raise no_such_path()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": [resource for kind in kinds for resource in _resources(kind)],
    }


def _resources(kind: ServedKind) -> Iterable[JsonObject]:
    main: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        main["shortNames"] = list(kind.short_names)
    if kind.categories:
        main["categories"] = list(kind.categories)
    if "list" in kind.verbs:
        stored = hashlib.sha256(f"{kind.api_version}/{kind.kind}".encode()).digest()
        main["storageVersionHash"] = base64.b64encode(stored[:8]).decode()
    yield main
    for name in kind.subresources:
        yield _subresource(kind, name)


def _subresource(kind: ServedKind, name: str) -> JsonObject:
    described: JsonObject = {
        "name": f"{kind.plural}/{name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": ["get", "patch", "update"],
    }
    if name in SUBRESOURCE_KINDS:
        group, version, other, verbs = SUBRESOURCE_KINDS[name]
        described.update(kind=other, verbs=list(verbs))
        if (group, version) != (kind.group, kind.version):
            described.update(group=group, version=version)
    return described


_LIST = "APIGroupDiscoveryList"
_VERSIONS = ("v2", "v2beta1")


def wanted_version(accept: bytes | None) -> str | None:
    """Return the version of aggregated discovery that a client prefers; None for legacy."""
    for part in (accept or b"").decode("latin-1").split(","):
        pieces = {piece.strip() for piece in part.split(";")}
        if {"application/json", "g=apidiscovery.k8s.io", f"as={_LIST}"} <= pieces:
            for version in _VERSIONS:
                if f"v={version}" in pieces:
                    return version
    return None


def content_type(version: str) -> bytes:
    """Return the media type of an aggregated document."""
    return f"application/json;g=apidiscovery.k8s.io;v={version};as={_LIST}".encode()


def aggregated(catalog: Catalog, version: str, *, core: bool) -> JsonObject:
    """Return `/api` (core) or `/apis` (the other groups), aggregated."""
    groups = {name: versions for name, versions in catalog.groups().items() if (name == "") == core}
    return {
        "kind": _LIST,
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": [_aggregated_group(catalog, name, versions) for name, versions in groups.items()],
    }


def _aggregated_group(catalog: Catalog, name: str, versions: list[str]) -> JsonObject:
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


def _resource(kind: ServedKind) -> JsonObject:
    own = _kind(kind.group, kind.version, kind.kind)
    described: JsonObject = {
        "resource": kind.plural,
        "responseKind": own,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
        "shortNames": list(kind.short_names),
        "categories": list(kind.categories),
        "subresources": [_aggregated_subresource(name, own) for name in kind.subresources],
    }
    return {key: value for key, value in described.items() if value != []}


def _aggregated_subresource(name: str, own: JsonObject) -> JsonObject:
    verbs: tuple[str, ...] = ("get", "patch", "update")
    if name in SUBRESOURCE_KINDS:
        group, version, kind, verbs = SUBRESOURCE_KINDS[name]
        own = _kind(group, version, kind)
    return {"subresource": name, "responseKind": own, "verbs": list(verbs)}
