"""How many more nodes each group may have, and why some may have none.

A group is bounded by its own maximum, by the most of one scale-up, by the nodes of the whole
cluster, and by the cluster's cores, memory and GPUs (--cores-total, --memory-total, --gpu-total). A
group that is all or nothing may have all of them, or none. The least of the cluster's resources
keeps nodes from being removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.options import AutoscalerOptions, ScaleUpOptions
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.fit.batches import Template
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
"""Labels by which clouds say which GPU a node has."""


class ResourceLimitError(ValueError):
    """A limit of the cluster that cannot be read."""


@dataclass(frozen=True, slots=True)
class ResourceLimit:
    """The least and the most of one resource in the whole cluster."""

    name: str
    resources: tuple[str, ...]
    least: int
    most: int
    gpu_type: str = ""

    def of(self, node: Node) -> int:
        """How much of it a node has."""
        labels = node.metadata.labels
        if self.gpu_type and self.gpu_type not in {labels.get(one) for one in GPU_LABELS}:
            return 0
        return sum(value(node.status.capacity.get(one, 0)) for one in self.resources)


def read_resource_limits(options: AutoscalerOptions) -> tuple[ResourceLimit, ...]:
    """The limits that were set; ResourceLimitError if one cannot be read."""
    usual = ScaleUpOptions()
    found = []
    if options.cores_total != usual.cores_total:
        found.append(ResourceLimit("cpu", (CPU,), *_range("cores-total", options.cores_total)))
    if options.memory_total != usual.memory_total:
        least, most = _range("memory-total", options.memory_total)
        found.append(ResourceLimit("memory", (MEMORY,), least * GIB, most * GIB))
    for text in options.gpu_total:
        kind, _, bounds = text.partition(":")
        found.append(ResourceLimit(kind, GPU_RESOURCES, *_range("gpu-total", bounds, text), kind))
    return tuple(found)


def sums(snapshot: Snapshot, totals: Iterable[ResourceLimit]) -> dict[str, int]:
    """How much of each the cluster has."""
    asked = tuple(totals)
    nodes = [node for node in snapshot.cluster.nodes if node is not None] if asked else []
    return {total.name: sum(map(total.of, nodes)) for total in asked}


def _range(flag: str, text: str, whole: str = "") -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not (least.isdecimal() and most.isdecimal() and int(least) <= int(most)):
        raise ResourceLimitError(f"--{flag} {(whole or text)[:80]!r}: write it as MIN:MAX")
    return int(least), int(most)


AT_MAXIMUM = "max node group size reached"
ALL_NODES = "max nodes in the cluster reached"
RESOURCES = "max cluster {} limit reached"
NO_TEMPLATE = "nobody can say what its next node will be"


@dataclass(frozen=True, slots=True, eq=False)
class ScaleUpLimits:
    """Who may buy how many."""

    most: dict[str, int] = field(default_factory=dict)
    """By group that may have some."""
    refused: dict[str, str] = field(default_factory=dict)
    """The others, and why."""
    whole: int | None = None
    """How many more nodes the whole cluster may have; None is any number."""
    shared: bool = False
    """Whether what one group buys leaves the others less than this says."""

    def templates(self, cluster_view: ClusterView) -> list[tuple[NodeGroupView, Template]]:
        """The groups that may have some, with what new nodes of theirs are."""
        views = (cluster_view.groups[name] for name in sorted(self.most))
        return [(view, view.template) for view in views if view.template is not None]


def scale_up_limits(cluster_view: ClusterView) -> ScaleUpLimits:
    """The bounds of all groups, in a snapshot that has all nodes which are on their way."""
    totals = read_resource_limits(cluster_view.options)
    found = ScaleUpLimits(whole=_whole(cluster_view), shared=bool(totals))
    used = sums(cluster_view.snapshot, totals)
    for name, view in sorted(cluster_view.groups.items()):
        why = cluster_view.closed.get(name) or ("" if view.template else NO_TEMPLATE)
        if not why:
            why, most = _least(_limits(cluster_view.options, view, found.whole, totals, used))
            if not why and view.options.zero_or_max_node_scaling and most < view.room:
                why = ALL_NODES
            found.most.update({} if why else {name: most})
        if why:
            found.refused[name] = why
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
    yield view.room, AT_MAXIMUM
    if not view.options.zero_or_max_node_scaling:
        yield max(1, options.max_nodes_per_scaleup), AT_MAXIMUM
    if whole is not None:
        yield whole, ALL_NODES
    for total in totals:
        each = total.of(view.template.node) if view.template else 0
        if each:
            yield max(0, total.most - used[total.name]) // each, RESOURCES.format(total.name)


def _least(limits: Iterable[tuple[int, str]]) -> tuple[str, int]:
    """The lowest limit; if it is zero, what says so first."""
    found = list(limits)
    why = next((why for most, why in found if most <= 0), "")
    return why, min(most for most, _ in found)
