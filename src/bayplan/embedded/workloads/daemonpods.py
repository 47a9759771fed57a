"""The pods of DaemonSets: which nodes they go to, and what they tolerate."""

from __future__ import annotations

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.workloads.template import generate_name, pod_from
from bayplan.kube.codec.objects import without_nulls
from bayplan.kube.daemons import daemon_tolerations, selects
from bayplan.kube.nodes import Node
from bayplan.kube.pods import PodSpec, Toleration
from bayplan.kube.tolerations import find_untolerated

NODE_FIELD = "simulation.bayplan.io/daemon-node"
"""Which node a pod was made for, where a controller finds it without reading the affinity."""
REVISION_HASH = "controller-revision-hash"

_PLACING = ("nodeName", "nodeSelector", "affinity", "tolerations", "hostNetwork")
# A node that is not ready yet gets its pod all the same: the taint will go.
_PASSING = (
    Toleration(key="node.kubernetes.io/not-ready", operator="Exists"),
    Toleration(key="node.kubernetes.io/unreachable", operator="Exists"),
)


def daemon_pod(owner: JsonObject, node: str, digest: str) -> JsonObject:
    """The pod of a set for one node."""
    pod = pod_from(owner, generateName=generate_name(owner))
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] = {**(meta.get("labels") or {}), REVISION_HASH: digest}
    meta["annotations"] = {**(meta.get("annotations") or {}), NODE_FIELD: node}
    spec["tolerations"] = msgspec.to_builtins(_tolerations(_placing(spec)))
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [wanted]}
    return pod


def fits(owner: JsonObject, node: Node) -> bool:
    """Whether a set wants a pod on a node: by its selector, its affinity and the node's taints."""
    spec = _placing(owner["spec"]["template"]["spec"])
    if spec.node_name and spec.node_name != node.name:
        return False
    held = (*_tolerations(spec), *_PASSING)
    return selects(spec, node) and find_untolerated(node.spec.taints, held) is None


def _tolerations(spec: PodSpec) -> list[Toleration]:
    return daemon_tolerations(spec.tolerations, host_network=spec.host_network)


def _placing(spec: JsonObject) -> PodSpec:
    """What a template says of where its pods go."""
    said = {field: spec[field] for field in _PLACING if field in spec}
    return msgspec.convert(without_nulls(said), PodSpec)
