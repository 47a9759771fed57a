"""An agent at work on a cluster, and what to wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import CollectorRegistry

from bayplan.client import Client, Informers, Untyped, merge
from bayplan.kube.labels import INSTANCE_TYPE
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.resources import is_attach_limit
from bayplan.kube.storage import CSINode
from bayplan.node.agent import LimitsAgent
from bayplan.node.decision import AttachLimitSettings
from tests.patience import PATIENCE

K = TypeVar("K", bound=KubeObject)
EBS_KEY = "attachable-volumes-aws-ebs"


async def seen(client: Client, kind: type[K], holds: Callable[[K], bool]) -> K:
    """The first object of a kind of which that holds, once there is one."""
    async with asyncio.timeout(PATIENCE), Informers(client) as informers:
        news, found = asyncio.Event(), informers.of(kind)
        found.on_change(lambda _: news.set())
        while True:
            for one in found.objects.values():
                if holds(one):
                    return one
            news.clear()
            await news.wait()


@dataclass(slots=True)
class RunningAgent:
    """An agent at work."""

    client: Client
    agent: LimitsAgent
    registry: CollectorRegistry
    settings: AttachLimitSettings

    async def until(self, name: str, holds: Callable[[Node], bool]) -> Node:
        """A node, once that holds of it."""
        return await seen(self.client, Node, lambda one: one.name == name and holds(one))

    async def publishes(self, name: str, limits: dict[str, int]) -> Node:
        """A node, once just these attach limits stand in its status."""
        written = {key: str(count) for key, count in limits.items()}
        return await self.until(
            name,
            lambda node: (
                limits_of(node.status.allocatable) == written
                and limits_of(node.status.capacity) == written
            ),
        )

    async def csinode(self, name: str, holds: Callable[[CSINode], bool]) -> CSINode:
        """A CSINode, once that holds of it."""
        return await seen(self.client, CSINode, lambda one: one.name == name and holds(one))

    def count(self, name: str, **labels: str) -> float:
        """A metric of ours."""
        return self.registry.get_sample_value(f"bayplan_attach_limit_{name}", labels) or 0.0


def limits_of(amounts: dict[str, str | int | float]) -> dict[str, str]:
    return {key: str(one) for key, one in amounts.items() if is_attach_limit(key)}


@asynccontextmanager
async def publishing(
    client: Client,
    settings: AttachLimitSettings | None = None,
    node: str = "",
    *,
    by: Client | None = None,
) -> AsyncIterator[RunningAgent]:
    """An agent at work until the end; `by` whom, if not by the client that looks on."""
    registry = CollectorRegistry()
    at = RunningAgent(client, None, registry, settings or AttachLimitSettings())  # type: ignore[arg-type]
    at.agent = LimitsAgent(lambda: at.settings, node=node, registry=registry)
    task = asyncio.ensure_future(at.agent.lead(by or client))
    try:
        async with asyncio.timeout(PATIENCE):
            await at.agent.ready.wait()
        yield at
        assert not task.done()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def node(name: str, instance_type: str, provider: str = "aws:///eu-1a/i-1", **more: str) -> Untyped:
    size = {"cpu": "4", "memory": "16Gi", "pods": "110", **more}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {INSTANCE_TYPE: instance_type}},
        "spec": {"providerID": provider} if provider else {},
        "status": {"capacity": size, "allocatable": size},
    }


def csinode(name: str, **limits: int | None) -> Untyped:
    drivers = [
        {"name": driver.replace("_", "."), "nodeID": name, "topologyKeys": None}
        | ({} if limit is None else {"allocatable": {"count": limit}})
        for driver, limit in limits.items()
    ]
    kind = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode"}
    return {**kind, "metadata": {"name": name}, "spec": {"drivers": drivers}}


async def retype(client: Client, name: str, instance_type: str) -> None:
    """Make it a node of another type."""
    labels = {"labels": {INSTANCE_TYPE: instance_type}}
    await client.patch(Node, name, change=merge({"metadata": labels}))


async def overwrite(client: Client, name: str, key: str, amount: str) -> None:
    """Write somebody else's number into a node's status."""
    change = merge({"status": {"allocatable": {key: amount}}})
    await client.patch(Node, name, change=change, subresource="status")
