"""Where a pod's spec is written: in the template of what made it, or in the pod itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bayplan.base.values import JsonObject
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.meta import OwnerReference
from bayplan.kube.pods import Pod

_TEMPLATE = ("spec", "template", "spec")
_HASH = "pod-template-hash"
TEMPLATES: Mapping[str, tuple[str, ...]] = {
    "Deployment": _TEMPLATE,
    "StatefulSet": _TEMPLATE,
    "DaemonSet": _TEMPLATE,
    "ReplicaSet": _TEMPLATE,
    "ReplicationController": _TEMPLATE,
    "Job": _TEMPLATE,
    "Pod": ("spec",),
}
"""Where each kind has the pod's spec."""


class Written(NamedTuple):
    """The object in which a pod's spec is written."""

    kind: str
    name: str

    def patch(self, spec: JsonObject) -> JsonObject:
        """A patch of the spec as a patch of this object."""
        patch = spec
        for field in reversed(TEMPLATES.get(self.kind, _TEMPLATE)):
            patch = {field: patch}
        return patch


def written_in(snapshot: Snapshot, pod: Pod) -> Written:
    """What a pod was made from: its controller, or that one's; or nothing but itself."""
    owner = pod.metadata.controller
    if owner is None or owner.kind == "Node":
        return Written("Pod", pod.name)
    if owner.kind == "ReplicaSet":
        return _behind(snapshot, pod, owner)
    return Written(owner.kind, owner.name)


def _behind(snapshot: Snapshot, pod: Pod, owner: OwnerReference) -> Written:
    """The Deployment of a ReplicaSet; where that is not known, its pods are named after it."""
    controllers = snapshot.cluster.workloads.controllers
    replicas = controllers.get(("ReplicaSet", f"{pod.namespace}/{owner.name}"))
    above = replicas.metadata.controller if replicas is not None else None
    if above is not None:
        return Written(above.kind, above.name)
    suffix = f"-{pod.metadata.labels.get(_HASH, '')}"
    if replicas is None and suffix != "-" and owner.name.endswith(suffix):
        return Written("Deployment", owner.name.removesuffix(suffix))
    return Written(owner.kind, owner.name)
