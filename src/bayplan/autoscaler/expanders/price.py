"""The price expander, and the prices that it asks the cloud for.

A candidate's score is what its nodes cost over what its pods are worth, times how unlike its nodes
are to the size that a cluster of so many nodes should have; the more nodes are bought, the less
that likeness counts. Nodes with GPUs are never liked, so that they are bought for those only who
need them.

Pods are asked for by signature, since the price of a pod is a matter of what it requests. A cloud
that names no prices, or not that of one group, is no failure: the expander goes on without.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bayplan.autoscaler.cloudstate.reader import gpu_label
from bayplan.autoscaler.estimate.options import NodeGroupOption
from bayplan.autoscaler.expanders.filters import least, pods_of
from bayplan.fit import Snapshot
from bayplan.fit.batches import Template
from bayplan.fit.signatures.signature import PodSignature
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU
from bayplan.nodegroups import NodeGroupError, NodeRef, Provider


@dataclass(frozen=True, slots=True)
class PodPrices:
    """What pods are worth an hour, as far as the cloud says."""

    signatures: Mapping[PodSignature, float] = field(default_factory=dict)
    stabilization: float = 0.0
    """A small pod, which keeps pods that ask for next to nothing from deciding."""
    gpu_label: str = ""
    """The label that tells which GPU a node has."""


AT_ONCE = 16
STABILIZATION = Pod(
    metadata=ObjectMeta(name="stabilize", namespace="default"),
    spec=PodSpec(
        containers=[
            Container(
                name="c",
                resources=ResourceRequirements(requests={"cpu": "500m", "memory": "500Mi"}),
            )
        ]
    ),
)


async def node_prices(
    provider: Provider, templates: Mapping[str, Template], now: datetime
) -> dict[str, float]:
    """By group the price of one new node, where the cloud says it."""
    door = asyncio.Semaphore(AT_ONCE)
    asked = [
        _price(door, provider.node_price(NodeRef.of(template.node), now, _later(now)))
        for template in templates.values()
    ]
    found = zip(templates, await asyncio.gather(*asked), strict=True)
    return {group: price for group, price in found if price is not None}


async def pod_prices(
    provider: Provider, snapshot: Snapshot, waiting: Iterable[Pod], now: datetime
) -> PodPrices:
    """What pods are worth, for the price expander."""
    door = asyncio.Semaphore(AT_ONCE)
    examples = {snapshot.cluster.signatures.of(pod): pod for pod in waiting}
    pods = [STABILIZATION, *examples.values()]
    asked = [_price(door, provider.pod_price(pod, now, _later(now))) for pod in pods]
    stable, *each = await asyncio.gather(*asked)
    found = zip(examples, each, strict=True)
    return PodPrices(
        {signature: price for signature, price in found if price is not None},
        stable or 0.0,
        await gpu_label(provider),
    )


def _later(now: datetime) -> datetime:
    return now + timedelta(hours=1)


async def _price(door: asyncio.Semaphore, asked: Awaitable[float]) -> float | None:
    """What is said, if it is a price at all."""
    async with door:
        try:
            said = await asked
        except NodeGroupError:
            return None
    return said if math.isfinite(said) and said >= 0 else None


PREFERRED = ((2, 1000), (6, 2000), (20, 4000), (60, 8000), (200, 16000))
"""Up to so many nodes in the cluster, nodes of so many thousandths of a CPU are preferred."""
PREFERRED_IN_LARGE = 32000
GPU = "nvidia.com/gpu"
GPU_UNFITNESS = 1000.0
FADING = 15.0
"""With so many nodes, likeness to the preferred size has lost three quarters of its weight."""


def cheapest(
    candidates: Sequence[NodeGroupOption], pods: PodPrices, nodes: int
) -> list[NodeGroupOption]:
    """Those of the best score in a cluster of so many nodes; one without a price is not taken,
    unless none has one.
    """
    priced = [one for one in candidates if _is_priced(one, pods)]
    return least(priced, lambda one: score(one, pods, nodes)) if priced else list(candidates)


def score(candidate: NodeGroupOption, pods: PodPrices, nodes: int) -> float:
    """How dear and how unfit; less is better."""
    paid = (candidate.price or 0.0) + pods.stabilization
    helped = pods_of(candidate)
    worth = (
        sum(pods.signatures[one.signature] * count for one, count in helped) + pods.stabilization
    )
    ratio = paid / worth if worth > 0 else math.inf
    return _unfitness(candidate, pods.gpu_label, nodes) * ratio


def _is_priced(candidate: NodeGroupOption, pods: PodPrices) -> bool:
    known = all(group.signature in pods.signatures for group, _ in pods_of(candidate))
    return known and candidate.price is not None


def _unfitness(candidate: NodeGroupOption, gpu_label: str, nodes: int) -> float:
    node = candidate.template.node
    if _has_gpu(node, gpu_label):
        return GPU_UNFITNESS
    preferred = next((cpu for most, cpu in PREFERRED if nodes <= most), PREFERRED_IN_LARGE)
    has = milli_value(node.status.capacity.get(CPU, 0)) or 1
    unlike = max(preferred / has, has / preferred)
    return (unlike - 1) * (1 - math.tanh((candidate.nodes - 1) / FADING)) + 1


def _has_gpu(node: Node, label: str) -> bool:
    return label in node.metadata.labels or milli_value(node.status.allocatable.get(GPU, 0)) > 0
