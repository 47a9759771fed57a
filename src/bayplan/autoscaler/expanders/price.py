"""The price expander: how well money is spent, and how well nodes suit the cluster's size.

A candidate's score is what its nodes cost over what its pods are worth, times how unlike its nodes
are to the size that a cluster of so many nodes should have; the more nodes are bought, the less
that likeness counts. Nodes with GPUs are never liked, so that they are bought for those only who
need them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bayplan.autoscaler.candidates import Candidate
from bayplan.autoscaler.expanders.market import PodPrices
from bayplan.autoscaler.expanders.simple import least, pods_of
from bayplan.kube.nodes import Node
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU

PREFERRED = ((2, 1000), (6, 2000), (20, 4000), (60, 8000), (200, 16000))
"""Up to so many nodes in the cluster, nodes of so many thousandths of a CPU are preferred."""
PREFERRED_IN_LARGE = 32000
GPU = "nvidia.com/gpu"
GPU_UNFITNESS = 1000.0
FADING = 15.0
"""With so many nodes, likeness to the preferred size has lost three quarters of its weight."""


def cheapest(candidates: Sequence[Candidate], pods: PodPrices, nodes: int) -> list[Candidate]:
    """Those of the best score in a cluster of so many nodes; one without a price is not taken,
    unless none has one.
    """
    priced = [one for one in candidates if _is_priced(one, pods)]
    return least(priced, lambda one: score(one, pods, nodes)) if priced else list(candidates)


def score(candidate: Candidate, pods: PodPrices, nodes: int) -> float:
    """How dear and how unfit; less is better."""
    paid = (candidate.price or 0.0) + pods.stabilization
    helped = pods_of(candidate)
    worth = sum(pods.shapes[one.shape] * count for one, count in helped) + pods.stabilization
    ratio = paid / worth if worth > 0 else math.inf
    return _unfitness(candidate, pods.gpu_label, nodes) * ratio


def _is_priced(candidate: Candidate, pods: PodPrices) -> bool:
    known = all(group.shape in pods.shapes for group, _ in pods_of(candidate))
    return known and candidate.price is not None


def _unfitness(candidate: Candidate, gpu_label: str, nodes: int) -> float:
    node = candidate.template.node
    if _has_gpu(node, gpu_label):
        return GPU_UNFITNESS
    preferred = next((cpu for most, cpu in PREFERRED if nodes <= most), PREFERRED_IN_LARGE)
    has = milli_value(node.status.capacity.get(CPU, 0)) or 1
    unlike = max(preferred / has, has / preferred)
    return (unlike - 1) * (1 - math.tanh((candidate.nodes - 1) / FADING)) + 1


def _has_gpu(node: Node, label: str) -> bool:
    return label in node.metadata.labels or milli_value(node.status.allocatable.get(GPU, 0)) > 0
