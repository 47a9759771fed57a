"""Whether a node is ready, as Cluster Autoscaler reads its conditions and taints.

Beside what the node says of itself, it is not ready while it has a taint that new nodes start with,
nor while its label says that it has a GPU and it has none yet.
"""

from __future__ import annotations

from bayplan.autoscaler.options import ScaleUpOptions
from bayplan.autoscaler.scaledown.gpus import has_gpu
from bayplan.kube.nodes import Node

NOT_READY_TAINTS = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
    }
)
NOT_READY = {
    "Ready": frozenset({"False", "Unknown"}),
    "DiskPressure": frozenset({"True"}),
    "NetworkUnavailable": frozenset({"True"}),
}
"""By condition, what it says of a node that is not ready."""
STARTUP_TAINTS = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
"""What the keys of taints begin with that new nodes start with."""


def is_ready(node: Node, options: ScaleUpOptions, gpu_label: str = "") -> bool:
    """Whether a node is ready, and all of it is."""
    return says_ready(node) and not is_starting(node, options) and not lacks_gpu(node, gpu_label)


def says_ready(node: Node) -> bool:
    """Whether a node says that it is ready, and no condition or taint speaks against it."""
    conditions = node.status.conditions
    if not any(one.type == "Ready" for one in conditions):
        return False
    if any(taint.key in NOT_READY_TAINTS for taint in node.spec.taints):
        return False
    return not any(one.status in NOT_READY.get(one.type, ()) for one in conditions)


def is_starting(node: Node, options: ScaleUpOptions) -> bool:
    """Whether a node still has a taint that new ones start with."""
    prefixes = (*STARTUP_TAINTS, *options.startup_taint_prefix)
    return any(
        taint.key in options.startup_taint or taint.key.startswith(prefixes)
        for taint in node.spec.taints
    )


def lacks_gpu(node: Node, gpu_label: str) -> bool:
    """Whether a node is to have a GPU, and has none yet."""
    return bool(gpu_label) and gpu_label in node.metadata.labels and not has_gpu(node)
