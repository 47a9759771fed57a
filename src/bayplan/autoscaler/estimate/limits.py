"""Limits of scale-ups: how many nodes each group may add, and why some may add none.

A group is limited by its maximum size, by --max-nodes-per-scaleup, by --max-nodes-total, and by the
cluster's cores, memory and GPUs (--cores-total, --memory-total, --gpu-total). A group with
zero-or-max scaling may add all of its nodes or none. The minimum of the cluster's resources limits
scale-down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.options import AutoscalerOptions, ScaleUpOptions
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import value
from bayplan.kube.resources import CPU, GPU_RESOURCES, MEMORY

GIB = 1 << 30
GPU_LABELS = (
    "cloud.google.com/gke-accelerator",
    "k8s.amazonaws.com/accelerator",
    "accelerator",
    "cluster-api/accelerator",
)
"""Labels with a node's GPU type, by cloud."""


class ResourceLimitError(ValueError):
    """A resource limit of the cluster that cannot be read."""


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    """The minimum and maximum of one resource in the cluster."""

    name: str
    resources: tuple[str, ...]
    least: int
    most: int
    gpu_type: str = ""

    def of(self, node: Node) -> int:
        """Return the node's amount of the resource."""
        labels = node.metadata.labels
        if self.gpu_type and self.gpu_type not in {labels.get(one) for one in GPU_LABELS}:
            return 0
        return sum(value(node.status.capacity.get(one, 0)) for one in self.resources)


def read_resource_limits(options: AutoscalerOptions) -> tuple[ResourceLimit, ...]:
    """Return the limits that are set; ResourceLimitError if one cannot be read."""
    defaults = ScaleUpOptions()
    found = []
    if options.cores_total != defaults.cores_total:
        found.append(ResourceLimit("cpu", (CPU,), *_range("cores-total", options.cores_total)))
    if options.memory_total != defaults.memory_total:
        least, most = _range("memory-total", options.memory_total)
        found.append(ResourceLimit("memory", (MEMORY,), least * GIB, most * GIB))
    for text in options.gpu_total:
        kind, _, bounds = text.partition(":")
        found.append(ResourceLimit(kind, GPU_RESOURCES, *_range("gpu-total", bounds, text), kind))
    return tuple(found)


def resource_totals(snapshot: Snapshot, totals: Iterable[ResourceLimit]) -> dict[str, int]:
    """Return the cluster's amount of each resource."""
    limits = tuple(totals)
    nodes = [node for node in snapshot.cluster.nodes if node is not None] if limits else []
    return {total.name: sum(map(total.of, nodes)) for total in limits}


def _range(flag: str, text: str, whole: str = "") -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not (least.isdecimal() and most.isdecimal() and int(least) <= int(most)):
        raise ResourceLimitError(f"--{flag} {(whole or text)[:80]!r}: write it as MIN:MAX")
    return int(least), int(most)


AT_MAXIMUM = "max node group size reached"
ALL_NODES = "max nodes in the cluster reached"
RESOURCES = "max cluster {} limit reached"
NO_TEMPLATE = "no template node info"


@dataclass(frozen=True, slots=True, eq=False)
class ScaleUpLimits:
    """How many nodes each group may add."""

    max_nodes: dict[str, int] = field(default_factory=dict)
    """By group that may add some."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The other groups, and why."""
    cluster_max: int | None = None
    """How many nodes the cluster may add; None is no limit."""
    shared: bool = False
    """Whether a scale-up of one group lowers the limits of the others."""

    def templates(self, cluster_view: ClusterView) -> list[tuple[NodeGroupView, NodeTemplate]]:
        """Return the groups that may add nodes, with their templates."""
        views = (cluster_view.groups[name] for name in sorted(self.max_nodes))
        return [(view, view.template) for view in views if view.template is not None]


def scale_up_limits(cluster_view: ClusterView) -> ScaleUpLimits:
    """Return the limits of all groups, in a snapshot with all upcoming nodes."""
    totals = read_resource_limits(cluster_view.options)
    found = ScaleUpLimits(cluster_max=_whole(cluster_view), shared=bool(totals))
    used = resource_totals(cluster_view.snapshot, totals)
    for name, view in sorted(cluster_view.groups.items()):
        why = cluster_view.skipped_groups.get(name) or ("" if view.template else NO_TEMPLATE)
        if not why:
            why, most = _least(_limits(cluster_view.options, view, found.cluster_max, totals, used))
            if not why and view.options.zero_or_max_node_scaling and most < view.max_increase:
                why = ALL_NODES
            found.max_nodes.update({} if why else {name: most})
        if why:
            found.skipped[name] = why
    return found


def _whole(cluster_view: ClusterView) -> int | None:
    most = cluster_view.options.max_nodes_total
    return max(0, most - len(cluster_view.snapshot.cluster.slots)) if most > 0 else None


def _limits(
    options: AutoscalerOptions,
    view: NodeGroupView,
    whole: int | None,
    totals: Iterable[ResourceLimit],
    used: dict[str, int],
) -> Iterator[tuple[int, str]]:
    yield view.max_increase, AT_MAXIMUM
    if not view.options.zero_or_max_node_scaling:
        yield max(1, options.max_nodes_per_scaleup), AT_MAXIMUM
    if whole is not None:
        yield whole, ALL_NODES
    for total in totals:
        each = total.of(view.template.node) if view.template else 0
        if each:
            yield max(0, total.most - used[total.name]) // each, RESOURCES.format(total.name)


def _least(limits: Iterable[tuple[int, str]]) -> tuple[str, int]:
    """Return the lowest limit; if it is zero, its reason."""
    found = list(limits)
    why = next((why for most, why in found if most <= 0), "")
    return why, min(most for most, _ in found)
