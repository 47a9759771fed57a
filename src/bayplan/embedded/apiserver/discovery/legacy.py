"""The old discovery documents: groups, and the resources of a group's version."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from bayplan.embedded.apiserver.errors import no_such_path
from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.kinds.model import Kind

SUBRESOURCE_KINDS = {
    "binding": ("", "v1", "Binding", ("create",)),
    "eviction": ("policy", "v1", "Eviction", ("create",)),
    "scale": ("autoscaling", "v1", "Scale", ("get", "patch", "update")),
    "finalize": ("", "v1", "Namespace", ("update",)),
    "token": ("authentication.k8s.io", "v1", "TokenRequest", ("create",)),
}
"""Subresources whose objects are of another kind than the resource's own."""


def api_versions(url_host: str) -> JsonObject:
    """`/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": url_host}],
    }


def _group(name: str, versions: Iterable[str]) -> JsonObject:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def api_groups(catalog: Catalog) -> JsonObject:
    """`/apis`."""
    groups = [_group(name, versions) for name, versions in catalog.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(catalog: Catalog, name: str) -> JsonObject:
    """`/apis/<group>`."""
    versions = catalog.groups().get(name)
    if not versions or not name:
        raise no_such_path()
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def api_resources(catalog: Catalog, group: str, version: str) -> JsonObject:
    """`/api/v1` and `/apis/<group>/<version>`."""
    kinds = [kind for kind in catalog if (kind.group, kind.version) == (group, version)]
    if not kinds:
        raise no_such_path()
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": kinds[0].api_version,
        "resources": [resource for kind in kinds for resource in _resources(kind)],
    }


def _resources(kind: Kind) -> Iterable[JsonObject]:
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


def _subresource(kind: Kind, name: str) -> JsonObject:
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
