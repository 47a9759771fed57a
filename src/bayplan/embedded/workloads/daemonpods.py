"""The pods of DaemonSets: which nodes they go to, and what they tolerate."""

from __future__ import annotations

import msgspec

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.workloads.template import generate_name, pod_from
from bayplan.kube.nodes import Node, NodeSelector
from bayplan.kube.pods import Toleration
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.tolerations import find_untolerated

NODE_FIELD = "simulation.bayplan.io/daemon-node"
"""Which node a pod was made for, where a controller finds it without reading the affinity."""
REVISION_HASH = "controller-revision-hash"

TOLERATED: tuple[tuple[str, str], ...] = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""What Kubernetes lets every DaemonSet's pods tolerate."""
TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def daemon_pod(owner: JsonObject, node: str, digest: str) -> JsonObject:
    """The pod of a set for one node."""
    pod = pod_from(owner, generateName=generate_name(owner))
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"] = {**(meta.get("labels") or {}), REVISION_HASH: digest}
    meta["annotations"] = {**(meta.get("annotations") or {}), NODE_FIELD: node}
    spec["tolerations"] = tolerations(spec)
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    wanted = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": [wanted]}
    return pod


def tolerations(spec: JsonObject) -> list[JsonObject]:
    """A template's own tolerations and those that Kubernetes adds."""
    pairs = list(TOLERATED)
    if spec.get("hostNetwork"):
        pairs.append(TOLERATED_ON_HOST_NETWORK)
    found = list(spec.get("tolerations") or ())
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in pairs]
    return found + [one for one in added if one not in found]


def fits(owner: JsonObject, node: Node) -> bool:
    """Whether a set wants a pod on a node: by its selector, its affinity and the node's taints."""
    spec = owner["spec"]["template"]["spec"]
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    return _affine(spec, node) and _tolerant(spec, node)


def _affine(spec: JsonObject, node: Node) -> bool:
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if not required:
        return True
    return compile_node_selector(msgspec.convert(required, NodeSelector)).matches(node)


def _tolerant(spec: JsonObject, node: Node) -> bool:
    held = msgspec.convert(tolerations(spec), list[Toleration])
    # A node that is not ready yet gets its pod all the same: the taint will go.
    held.append(Toleration(key="node.kubernetes.io/not-ready", operator="Exists"))
    held.append(Toleration(key="node.kubernetes.io/unreachable", operator="Exists"))
    return find_untolerated(node.spec.taints, held) is None
