"""The price expander, and the prices that it reads from the provider.

An option's score is the price of its nodes divided by the price of its pods, times the unfitness of
its nodes: how far they are from the preferred node size for a cluster of this size. The more nodes
are added, the less unfitness counts. Nodes with GPUs are always unfit, so that they are added only
for pods that need them.

Prices of pods are read by signature, since they depend on requests only. Missing prices are no
error: the expander goes on without them.
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
from bayplan.fit.batches import NodeTemplate
from bayplan.fit.signatures.signature import PodSignature
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.kube.quantity import milli_value
from bayplan.kube.resources import CPU
from bayplan.nodegroups import NodeGroupError, NodeRef, Provider


@dataclass(frozen=True, slots=True)
class PodPrices:
    """Hourly prices of pods, as far as the provider has them."""

    signatures: Mapping[PodSignature, float] = field(default_factory=dict)
    stabilization: float = 0.0
    """The price of a small pod, which limits the effect of pods with tiny requests."""
    gpu_label: str = ""
    """The label of GPU nodes."""


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
    provider: Provider, templates: Mapping[str, NodeTemplate], now: datetime
) -> dict[str, float]:
    """Return the hourly price of a new node by group, where the provider has it."""
    semaphore = asyncio.Semaphore(AT_ONCE)
    calls = [
        _price(semaphore, provider.node_price(NodeRef.of(template.node), now, _later(now)))
        for template in templates.values()
    ]
    found = zip(templates, await asyncio.gather(*calls), strict=True)
    return {group: price for group, price in found if price is not None}


async def pod_prices(
    provider: Provider, snapshot: Snapshot, waiting: Iterable[Pod], now: datetime
) -> PodPrices:
    """Read the prices of pods for the price expander."""
    semaphore = asyncio.Semaphore(AT_ONCE)
    examples = {snapshot.cluster.signatures.of(pod): pod for pod in waiting}
    pods = [STABILIZATION, *examples.values()]
    calls = [_price(semaphore, provider.pod_price(pod, now, _later(now))) for pod in pods]
    stable, *each = await asyncio.gather(*calls)
    found = zip(examples, each, strict=True)
    return PodPrices(
        {signature: price for signature, price in found if price is not None},
        stable or 0.0,
        await gpu_label(provider),
    )


def _later(now: datetime) -> datetime:
    return now + timedelta(hours=1)


async def _price(semaphore: asyncio.Semaphore, calls: Awaitable[float]) -> float | None:
    """Await a price; None if the provider has none, or it is invalid."""
    async with semaphore:
        try:
            price = await calls
        except NodeGroupError:
            return None
    return price if math.isfinite(price) and price >= 0 else None


PREFERRED = ((2, 1000), (6, 2000), (20, 4000), (60, 8000), (200, 16000))
"""Preferred node size in millicores, by the maximum number of nodes in the cluster."""
PREFERRED_IN_LARGE = 32000
GPU = "nvidia.com/gpu"
GPU_UNFITNESS = 1000.0
FADING = 15.0
"""With so many nodes, unfitness has lost three quarters of its weight."""


def cheapest(
    candidates: Sequence[NodeGroupOption], pods: PodPrices, nodes: int
) -> list[NodeGroupOption]:
    """Return the options with the best score in a cluster of so many nodes; those without a price
    are left out, unless none has one.
    """
    priced = [one for one in candidates if _is_priced(one, pods)]
    return least(priced, lambda one: score(one, pods, nodes)) if priced else list(candidates)


def score(candidate: NodeGroupOption, pods: PodPrices, nodes: int) -> float:
    """Return price ratio times unfitness; less is better."""
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
