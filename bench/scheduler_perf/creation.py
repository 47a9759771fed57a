"""Create the objects of a workload, many at once, each object as upstream creates it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import msgspec

from bayplan.client import Client, merge
from bayplan.client.errors import AlreadyExistsError
from bayplan.client.resources import PODS
from bayplan.kube.nodes import Node
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bench.scheduler_perf import objects
from bench.scheduler_perf.posts import Sent, post
from bench.scheduler_perf.workloads import Operation, Workload, WorkloadError

WORKERS = 50
_encode = msgspec.json.Encoder().encode


class ObjectCreator:
    """Creates the objects of a workload; its pods are for one scheduler."""

    def __init__(self, client: Client, workload: Workload, scheduler: str) -> None:
        self._client = client
        self._workload = workload
        self._scheduler = scheduler
        self._nodes = itertools.count()

    async def nodes(self, number: int, operation: Operation) -> None:
        """The nodes of a step, with their CSINodes."""

        async def make(index: int) -> None:
            node = objects.node(operation, number, index, next(self._nodes))
            made: Any = await self._client.create(node)
            await self._untaint(made, node)
            csi_node = objects.csi_node(operation, node["metadata"]["name"])
            if csi_node is not None:
                await self._client.create(csi_node)

        await many(operation.count(), make)

    async def _untaint(self, made: Any, node: objects.Object) -> None:
        """A server that has no controllers behind it would leave a new node tainted for good."""
        wanted = (node.get("spec") or {}).get("taints")
        if made.get("spec", {}).get("taints") != wanted:
            change = merge({"spec": {"taints": wanted}})
            await self._client.patch(Node, made["metadata"]["name"], change=change)

    async def namespaces(self, operation: Operation) -> None:
        """The namespaces of a step."""
        path = operation.path("namespaceTemplatePath")

        async def make(index: int) -> None:
            made: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace"}
            if path is not None:
                made = objects.from_template(path, index, operation.count(), {})
            meta = {**made.get("metadata", {}), "name": f"{operation.text('prefix')}-{index}"}
            meta.pop("generateName", None)
            await self._ensure({**made, "metadata": meta})

        await many(operation.count(), make)

    async def namespace(self, name: str) -> None:
        """A namespace, if it is not there."""
        await self._ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def volumes(self, operation: Operation, namespace: str) -> None:
        """The volumes and claims that a step's pods use, all of them made before."""
        if operation.path("persistentVolumeClaimTemplatePath") is not None:
            await many(operation.count(), lambda i: self._volume(operation, namespace, i))

    async def pods(self, bodies: Iterable[bytes], namespace: str, sent: Sent) -> None:
        """The pods of a step, as `bodies` has them."""
        await post(self._client, PODS.path(namespace), bodies, sent)

    async def pods_at_rate(
        self, operation: Operation, namespace: str, sent: Sent, rate: float
    ) -> None:
        """The pods of a step, one after the other, so many a second."""

        async def make(index: int) -> None:
            pod = self._pod(operation, namespace, index)
            began = time.perf_counter()
            made: Any = await self._client.create(pod)
            sent(made["metadata"]["uid"], began)

        await at_rate(self._client, operation.count(), rate, make)

    def bodies(self, operation: Operation, namespace: str) -> Iterable[bytes]:
        """The pods of a step as they are sent; encoded once if they are all the same."""
        count, default = operation.count(), self._workload.default_pod
        if not objects.pods_differ(operation, default):
            return itertools.repeat(_encode(self._pod(operation, namespace, 0)), count)
        return [_encode(self._pod(operation, namespace, index)) for index in range(count)]

    def _pod(self, operation: Operation, namespace: str, index: int) -> objects.Object:
        pod = objects.pod(operation, self._workload.default_pod, namespace, index)
        pod["spec"]["schedulerName"] = self._scheduler
        return pod

    async def any(self, operation: Operation) -> None:
        """Whatever a step's template describes."""
        if operation.text("namespace"):
            await self.namespace(operation.text("namespace"))
        await many(operation.count(usual=1), lambda i: self._client.create(self._any(operation, i)))

    async def update(self, operation: Operation) -> None:
        """Whatever a step's template describes, changed; so many a second if it says so."""
        count, rate = operation.count(usual=1), operation.count("updatePerSecond")
        if rate:
            await at_rate(self._client, count, rate, lambda i: self._update_one(operation, i))
        else:
            await many(count, lambda i: self._update_one(operation, i))

    async def churned(
        self, template: objects.Object, namespace: str
    ) -> tuple[Any, tuple[str, ...]]:
        """One object of a churn, and by what it is deleted again."""
        resource = await self._client.discover(template["apiVersion"], template["kind"])
        if resource.namespaced:
            template["metadata"]["namespace"] = namespace
        if template["kind"] == "Pod":
            template["spec"]["schedulerName"] = self._scheduler
        live: Any = await self._client.create(template)
        name = live["metadata"]["name"]
        return resource, (namespace, name) if resource.namespaced else (name,)

    async def _volume(self, operation: Operation, namespace: str, index: int) -> None:
        volume, claim = objects.volume_and_claim(operation, namespace, index)
        await self._client.create(claim)
        await self._client.create(volume)
        bound = merge({"status": {"phase": "Bound"}})
        name = claim["metadata"]["name"]
        await self._client.patch(
            PersistentVolumeClaim, namespace, name, change=bound, subresource="status"
        )
        await self._client.patch(
            PersistentVolume, volume["metadata"]["name"], change=bound, subresource="status"
        )

    async def _update_one(self, operation: Operation, index: int) -> None:
        wanted = self._any(operation, index)
        resource = await self._client.discover(wanted["apiVersion"], wanted["kind"])
        meta = wanted["metadata"]
        key = (meta["namespace"], meta["name"]) if resource.namespaced else (meta["name"],)
        for subresource in operation.fields.get("subresources") or [""]:
            live: Any = await self._client.get(resource, *key)
            changed = objects.updated(live, wanted)
            await self._client.update(changed, resource, subresource=str(subresource))
        if "status" in wanted:
            status = merge({"status": objects.whole_status(wanted)})
            await self._client.patch(resource, *key, change=status, subresource="status")

    def _any(self, operation: Operation, index: int) -> objects.Object:
        path = operation.path("templatePath")
        if path is None:
            raise WorkloadError(f"{self._workload.name}: {operation.opcode} without a template")
        count = operation.count(usual=1)
        made = objects.from_template(path, index, count, operation.params())
        if operation.text("namespace"):
            made.setdefault("metadata", {})["namespace"] = operation.text("namespace")
        if made.get("kind") == "Pod":
            made["spec"].setdefault("schedulerName", self._scheduler)
        return made

    async def _ensure(self, obj: objects.Object) -> None:
        with suppress(AlreadyExistsError):
            await self._client.create(obj)


async def many(count: int, make: Callable[[int], Awaitable[object]]) -> None:
    """Do something so many times, a bounded number at once."""
    left = iter(range(count))

    async def work(indexes: Iterable[int]) -> None:
        for index in indexes:
            await make(index)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(WORKERS, count)):
            group.create_task(work(left))


async def at_rate(
    client: Client, count: int, rate: float, make: Callable[[int], Awaitable[object]]
) -> None:
    """Do something so many times, so often a second, each time when its moment has come."""
    clock = client.clock
    began = clock.monotonic()
    for index in range(count):
        await clock.sleep(max(0.0, began + (index + 1) / rate - clock.monotonic()))
        await make(index)
