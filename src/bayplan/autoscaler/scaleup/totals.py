"""The most that the whole cluster may have: --cores-total, --memory-total and --gpu-total.

Only the most is looked at when nodes are bought; the least keeps nodes from being given back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bayplan.autoscaler.options import AutoscalerOptions, ScaleUpOptions
from bayplan.fit import Snapshot
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


class TotalsError(ValueError):
    """A limit of the cluster that cannot be read."""


@dataclass(frozen=True, slots=True)
class Totals:
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


def read_totals(options: AutoscalerOptions) -> tuple[Totals, ...]:
    """The limits that were set; TotalsError if one cannot be read."""
    usual = ScaleUpOptions()
    found = []
    if options.cores_total != usual.cores_total:
        found.append(Totals("cpu", (CPU,), *_range("cores-total", options.cores_total)))
    if options.memory_total != usual.memory_total:
        least, most = _range("memory-total", options.memory_total)
        found.append(Totals("memory", (MEMORY,), least * GIB, most * GIB))
    for text in options.gpu_total:
        kind, _, bounds = text.partition(":")
        found.append(Totals(kind, GPU_RESOURCES, *_range("gpu-total", bounds, text), kind))
    return tuple(found)


def sums(snapshot: Snapshot, totals: Iterable[Totals]) -> dict[str, int]:
    """How much of each the cluster has."""
    asked = tuple(totals)
    nodes = [node for node in snapshot.cluster.nodes if node is not None] if asked else []
    return {total.name: sum(map(total.of, nodes)) for total in asked}


def _range(flag: str, text: str, whole: str = "") -> tuple[int, int]:
    least, _, most = text.partition(":")
    if not (least.isdecimal() and most.isdecimal() and int(least) <= int(most)):
        raise TotalsError(f"--{flag} {(whole or text)[:80]!r}: write it as MIN:MAX")
    return int(least), int(most)
