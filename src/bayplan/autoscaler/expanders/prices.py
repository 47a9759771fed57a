"""Asking a cloud what nodes and pods cost, for an hour from now on.

Pods are asked for by shape, since the price of a pod is a matter of what it requests. A cloud that
names no prices, or not that of one group, is no failure: whoever looks at prices goes on without.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Iterable, Mapping
from datetime import datetime, timedelta

from bayplan.autoscaler.cloud.calling import gpu_label
from bayplan.autoscaler.expanders.market import PodPrices
from bayplan.fit import Snapshot
from bayplan.fit.batches import Template
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.pods import Container, Pod, PodSpec, ResourceRequirements
from bayplan.nodegroups import NodeGroupError, NodeRef, Provider

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
    examples = {snapshot.cluster.shapes.of(pod): pod for pod in waiting}
    pods = [STABILIZATION, *examples.values()]
    asked = [_price(door, provider.pod_price(pod, now, _later(now))) for pod in pods]
    stable, *each = await asyncio.gather(*asked)
    found = zip(examples, each, strict=True)
    return PodPrices(
        {shape: price for shape, price in found if price is not None},
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
