"""The objects that every cluster has from the start."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonObject, clone
from bayplan.embedded.apiserver.request import ADMIN, Call
from bayplan.embedded.apiserver.rest import writes
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import ObjectKey

NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_EVERYTHING: list[JsonObject] = [
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
]


def _named(name: str, **fields: object) -> JsonObject:
    return {"metadata": {"name": name}, **fields}


SEEDS: dict[tuple[str, str], list[JsonObject]] = {
    ("", "namespaces"): [_named(name) for name in NAMESPACES],
    ("scheduling.k8s.io", "priorityclasses"): [
        _named("system-cluster-critical", value=2_000_000_000),
        _named("system-node-critical", value=2_000_001_000),
    ],
    ("rbac.authorization.k8s.io", "clusterroles"): [_named("cluster-admin", rules=_EVERYTHING)],
    ("rbac.authorization.k8s.io", "clusterrolebindings"): [
        _named(
            "cluster-admin",
            roleRef={"kind": "ClusterRole", "name": "cluster-admin"},
            subjects=[{"kind": "Group", "name": "system:masters"}],
        )
    ],
}


async def seed(backend: Backend) -> None:
    """Create those that do not exist yet."""
    for (group, plural), objects in SEEDS.items():
        kind = backend.catalog.find(group, "v1", plural)
        for obj in objects:
            name = obj["metadata"]["name"]
            if kind is not None and backend.store.get(ObjectKey(kind.storage, "", name)) is None:
                await writes.create(backend, Call(ADMIN, kind, name=name), clone(obj))
