"""A workload's steps, carried out against an API server while a scheduler is at work.

Objects are made by many hands at once. A step that is to wait waits until the pods of its namespace
have nodes, as a watch tells it. What is measured is what upstream measures: pods bound a second,
from when the measured step begins, counted each second.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bayplan.client import Change, Client, Informer, merge
from bayplan.client.errors import AlreadyExistsError, ApiError
from bayplan.client.resources import PODS
from bayplan.kube.durations import parse_duration
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from bench.scheduler_perf import objects
from bench.scheduler_perf.workloads import Operation, Workload, WorkloadError

HANDS = 50
LONGEST = 600.0
Make = Callable[[int], Awaitable[object]]


@dataclass(slots=True)
class Throughput:
    """Pods bound, second by second, while they are measured."""

    rates: list[float] = field(default_factory=list)
    pods: int = 0
    seconds: float = 0.0

    @property
    def average(self) -> float:
        """Pods a second over the whole measurement."""
        return self.pods / self.seconds if self.seconds else 0.0


class Steps:
    """One run of a workload."""

    def __init__(self, client: Client, workload: Workload, scheduler: str) -> None:
        self._client = client
        self._workload = workload
        self._scheduler = scheduler
        self._pods = Informer(client, PODS)
        self._pods.on_change(self._noted)
        self._bound: Counter[str] = Counter()
        self._tried: Counter[str] = Counter()
        self._made: Counter[str] = Counter()
        self._nodes = itertools.count()
        self._news = asyncio.Event()
        self._background: list[asyncio.Task[None]] = []
        self._measuring: tuple[asyncio.Task[None], Throughput, list[str]] | None = None
        self.measured = Throughput()

    async def run(self) -> Throughput:
        """Carry out all steps."""
        following = asyncio.ensure_future(self._pods.run())
        try:
            await self._pods.synced.wait()
            for number, operation in enumerate(self._workload.operations):
                await self._step(number, operation)
        finally:
            for task in (*self._background, following):
                task.cancel()
            await asyncio.gather(*self._background, following, return_exceptions=True)
        return self.measured

    def _noted(self, change: Change[Pod]) -> None:
        namespace = change.object.namespace
        self._bound[namespace] += _is_bound(change.new, change) - _is_bound(change.old)
        self._tried[namespace] += _is_tried(change.new, change) - _is_tried(change.old)
        self._news.set()

    async def _step(self, number: int, operation: Operation) -> None:
        namespace = operation.text("namespace", f"namespace-{number}")
        match operation.opcode:
            case "createNodes":
                await self._create_nodes(number, operation)
            case "createPods":
                await self._create_pods(operation, namespace)
            case "churn":
                self._start(self._churn(operation, namespace))
            case opcode:
                await self._other_steps()[opcode](operation)

    def _other_steps(self) -> dict[str, Callable[[Operation], Awaitable[None]]]:
        return {
            "createNamespaces": self._create_namespaces,
            "createPodSets": self._create_pod_sets,
            "createAny": self._create_any,
            "updateAny": self._update_any,
            "deletePods": self._delete_pods,
            "barrier": self._barrier,
            "sleep": self._sleep,
            "startCollectingMetrics": self._collect,
            "stopCollectingMetrics": self._stop_measuring,
        }

    # -- objects -------------------------------------------------------------------------------

    async def _create_nodes(self, number: int, operation: Operation) -> None:
        async def make(_: int) -> None:
            node = objects.node(operation, number, next(self._nodes))
            await self._client.create(node)
            status = merge({"status": node["status"]})
            await self._client.patch(
                Node, node["metadata"]["name"], change=status, subresource="status"
            )
            csi_node = objects.csi_node(operation, node["metadata"]["name"])
            if csi_node is not None:
                await self._client.create(csi_node)

        await self._many(operation.count(), make)

    async def _create_namespaces(self, operation: Operation) -> None:
        path = operation.path("namespaceTemplatePath")

        async def make(index: int) -> None:
            made: dict[str, Any] = {"apiVersion": "v1", "kind": "Namespace"}
            if path is not None:
                made = objects.from_template(path, index, operation.count(), {})
            meta = {**made.get("metadata", {}), "name": f"{operation.text('prefix')}-{index}"}
            meta.pop("generateName", None)
            await self._ensure({**made, "metadata": meta})

        await self._many(operation.count(), make)

    async def _create_pods(self, operation: Operation, namespace: str) -> None:
        await self._ensure_namespace(namespace)
        if operation.flag("collectMetrics"):
            self._start_measuring([namespace])
        with_claims = operation.path("persistentVolumeClaimTemplatePath") is not None

        async def make(index: int) -> None:
            if with_claims:
                await self._create_volume(operation, namespace, index)
            made = objects.pod(operation, self._workload.default_pod, namespace, index)
            made["spec"]["schedulerName"] = self._scheduler
            await self._client.create(made)

        before = self._bound[namespace]
        await self._many(operation.count(), make)
        self._made[namespace] += operation.count()
        if not operation.flag("skipWaitToCompletion"):
            wanted = before + operation.count()
            await self._until(lambda: self._bound[namespace] >= wanted)
        if operation.flag("collectMetrics"):
            await self._stop_measuring()

    async def _create_volume(self, operation: Operation, namespace: str, index: int) -> None:
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

    async def _create_pod_sets(self, operation: Operation) -> None:
        inner = Operation("createPods", operation.fields["createPodsOp"], operation.folder)
        for index in range(operation.count()):
            await self._create_pods(inner, f"{operation.text('namespacePrefix')}-{index}")

    async def _create_any(self, operation: Operation) -> None:
        if operation.text("namespace"):
            await self._ensure_namespace(operation.text("namespace"))
        await self._many(
            operation.count(usual=1), lambda i: self._client.create(self._any(operation, i))
        )

    async def _update_any(self, operation: Operation) -> None:
        await self._many(operation.count(usual=1), lambda i: self._update_one(operation, i))

    async def _update_one(self, operation: Operation, index: int) -> None:
        wanted = self._any(operation, index)
        resource = await self._client.discover(wanted["apiVersion"], wanted["kind"])
        meta = wanted["metadata"]
        key = (meta["namespace"], meta["name"]) if resource.namespaced else (meta["name"],)
        await self._client.patch(resource, *key, change=merge(wanted))
        if "status" in wanted:
            status = merge({"status": wanted["status"]})
            await self._client.patch(resource, *key, change=status, subresource="status")

    def _any(self, operation: Operation, index: int) -> objects.Object:
        path = operation.path("templatePath")
        if path is None:
            raise WorkloadError(f"{self._workload.name}: {operation.opcode} without a template")
        count = operation.count(usual=1)
        made = objects.from_template(path, index, count, operation.params())
        if operation.text("namespace"):
            made.setdefault("metadata", {})["namespace"] = operation.text("namespace")
        return made

    # -- the rest ------------------------------------------------------------------------------

    async def _churn(self, operation: Operation, namespace: str) -> None:
        """Make and, in turn, delete objects, every so many milliseconds."""
        await self._ensure_namespace(namespace)
        paths = [operation.folder / path for path in operation.fields["templatePaths"]]
        pause = operation.count("intervalMilliseconds", 500) / 1000
        number, recreate = operation.count("number"), operation.text("mode") == "recreate"
        made: dict[tuple[Path, int], tuple[Any, tuple[str, ...]]] = {}
        for turn in itertools.count():
            if not recreate and number and turn >= number:
                return
            await self._client.clock.sleep(pause)
            for path in paths:
                place = (path, turn % (number or 1))
                if recreate and place in made:
                    resource, key = made.pop(place)
                    with suppress(ApiError):
                        await self._client.delete(resource, *key)
                else:
                    with suppress(ApiError):
                        made[place] = await self._make_churned(path, namespace, turn)

    async def _make_churned(
        self, path: Path, namespace: str, turn: int
    ) -> tuple[Any, tuple[str, ...]]:
        obj = objects.from_template(path, turn, 1, {})
        resource = await self._client.discover(obj["apiVersion"], obj["kind"])
        if resource.namespaced:
            obj["metadata"]["namespace"] = namespace
        if obj["kind"] == "Pod":
            obj["spec"]["schedulerName"] = self._scheduler
        live: Any = await self._client.create(obj)
        name = live["metadata"]["name"]
        return resource, (namespace, name) if resource.namespaced else (name,)

    async def _delete_pods(self, operation: Operation) -> None:
        namespace = operation.text("namespace")
        labels = operation.fields.get("labelSelector") or {}
        names = [
            pod.name
            for pod in self._pods.objects.values()
            if pod.namespace == namespace
            and all(pod.metadata.labels.get(key) == value for key, value in labels.items())
        ]
        rate = operation.count("deletePodsPerSecond")
        deleting = self._delete(namespace, names, rate)
        if operation.flag("skipWaitToCompletion"):
            self._start(deleting)
        else:
            await deleting

    async def _delete(self, namespace: str, names: Sequence[str], rate: int) -> None:
        async def delete(index: int) -> None:
            with suppress(ApiError):
                await self._client.delete(Pod, namespace, names[index])

        if not rate:
            await self._many(len(names), delete)
            return
        for index in range(len(names)):
            await self._client.clock.sleep(1 / rate)
            await delete(index)

    async def _barrier(self, operation: Operation) -> None:
        namespaces = operation.fields.get("namespaces") or list(self._made)
        counted = self._tried if operation.text("stageRequirement") == "Attempted" else self._bound
        for namespace in namespaces:
            wanted = self._made[namespace]
            await self._until(_reached(counted, namespace, wanted))

    async def _sleep(self, operation: Operation) -> None:
        await self._client.clock.sleep(parse_duration(operation.text("duration", "0s")))

    async def _ensure_namespace(self, name: str) -> None:
        await self._ensure({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    async def _ensure(self, obj: objects.Object) -> None:
        with suppress(AlreadyExistsError):
            await self._client.create(obj)

    async def _many(self, count: int, make: Make) -> None:
        """Make many things, a bounded number at once."""
        left = iter(range(count))

        async def hand(indexes: Iterable[int]) -> None:
            for index in indexes:
                await make(index)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(HANDS, count)):
                group.create_task(hand(left))

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LONGEST):
            while not holds():
                self._news.clear()
                await self._news.wait()

    def _start(self, work: Any) -> None:
        self._background.append(asyncio.ensure_future(work))

    # -- measuring -----------------------------------------------------------------------------

    async def _collect(self, operation: Operation) -> None:
        self._start_measuring(list(operation.fields.get("namespaces") or ()))

    def _start_measuring(self, namespaces: list[str]) -> None:
        into = Throughput()
        task = asyncio.ensure_future(self._measure(into, namespaces))
        self._measuring = (task, into, namespaces)

    async def _measure(self, into: Throughput, namespaces: list[str]) -> None:
        clock = self._client.clock
        start, last = self._count(namespaces), self._count(namespaces)
        began = at = clock.monotonic()
        try:
            while True:
                await clock.sleep(1.0)
                now, count = clock.monotonic(), self._count(namespaces)
                into.rates.append((count - last) / (now - at))
                at, last = now, count
        finally:
            into.pods = self._count(namespaces) - start
            into.seconds = clock.monotonic() - began

    async def _stop_measuring(self, _: Operation | None = None) -> None:
        if self._measuring is None:
            return
        task, self.measured, _namespaces = self._measuring
        self._measuring = None
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def _count(self, namespaces: Sequence[str]) -> int:
        return sum(self._bound[one] for one in namespaces or self._bound)


def _reached(counted: Counter[str], namespace: str, wanted: int) -> Callable[[], bool]:
    return lambda: counted[namespace] >= wanted


def _is_bound(pod: Pod | None, change: Change[Pod] | None = None) -> bool:
    """Bound pods count even when they are gone: the scheduler has done its part."""
    if change is not None and change.type == "deleted":
        pod = change.old
    return pod is not None and bool(pod.spec.node_name)


def _is_tried(pod: Pod | None, change: Change[Pod] | None = None) -> bool:
    if change is not None and change.type == "deleted":
        pod = change.old
    if pod is None:
        return False
    return bool(pod.spec.node_name) or any(
        one.type == "PodScheduled" for one in pod.status.conditions
    )
