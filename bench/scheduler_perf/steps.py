"""A workload's steps, carried out against an API server while a scheduler is at work.

Objects are made by many hands at once; a step that is to wait waits until its pods have nodes, as a
watch tells it. What is measured is what upstream measures.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from bayplan.base.durations import parse_duration
from bayplan.client import Client
from bayplan.client.errors import ApiError
from bayplan.kube.pods import Pod
from bench.scheduler_perf import objects
from bench.scheduler_perf.creation import ObjectCreator, at_rate, many
from bench.scheduler_perf.progress import (
    WATCHED_PODS,
    Measurement,
    PodSelection,
    Progress,
    Throughput,
    spread,
)
from bench.scheduler_perf.workloads import Operation, Workload


class Steps:
    """One run of a workload."""

    def __init__(self, client: Client, workload: Workload, scheduler: str) -> None:
        self._client = client
        self._workload = workload
        self._progress = Progress(client, everything=_looks_at_waiting(workload))
        self._creator = ObjectCreator(client, workload, scheduler)
        self._awaited: Counter[str] = Counter()
        """Pods by namespace that no step has waited for yet."""
        self._background: list[asyncio.Task[None]] = []
        self._measurement: Measurement | None = None
        self.measured = Throughput()
        self.begun: Callable[[], None] = lambda: None
        self.ended: Callable[[], None] = lambda: None
        """Called when a measurement begins, and when it ends."""

    async def run(self) -> Throughput:
        """Carry out all steps."""
        try:
            await self._progress.synced()
            for number, operation in enumerate(self._workload.operations):
                await self._step(number, operation)
        finally:
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
            await self._progress.close()
        return self.measured

    async def _step(self, number: int, operation: Operation) -> None:
        namespace = operation.text("namespace", f"namespace-{number}")
        match operation.opcode:
            case "createNodes":
                await self._creator.nodes(number, operation)
            case "createPods":
                await self._create_pods(operation, namespace)
            case "churn":
                self._start(self._churn(operation, namespace))
            case opcode:
                await self._other_steps()[opcode](operation)

    def _other_steps(self) -> dict[str, Callable[[Operation], Awaitable[None]]]:
        return {
            "createNamespaces": self._creator.namespaces,
            "createPodSets": self._create_pod_sets,
            "createAny": self._creator.any,
            "updateAny": self._creator.update,
            "deletePods": self._delete_pods,
            "barrier": self._barrier,
            "sleep": self._sleep,
            "startCollectingMetrics": self._collect,
            "stopCollectingMetrics": self._stop_measuring,
        }

    async def _create_pods(self, operation: Operation, namespace: str) -> None:
        await self._creator.namespace(namespace)
        bodies = self._creator.bodies(operation, namespace)
        if operation.flag("collectMetrics"):
            self._measure(spread([namespace]))
        wanted = self._progress.bound[namespace] + operation.count()
        await self._creator.volumes(operation, namespace)
        await self._creator.pods(bodies, namespace, self._sent)
        if operation.flag("skipWaitToCompletion"):
            self._awaited[namespace] += operation.count()
        else:
            await self._progress.until_bound(namespace, wanted)
        if operation.flag("collectMetrics"):
            await self._stop_measuring()

    def _sent(self, uid: str, moment: float) -> None:
        if self._measurement is not None:
            self._measurement.sent(uid, moment)

    async def _create_pod_sets(self, operation: Operation) -> None:
        inner = Operation("createPods", operation.fields["createPodsOp"], operation.folder)
        for index in range(operation.count()):
            await self._create_pods(inner, f"{operation.text('namespacePrefix')}-{index}")

    async def _churn(self, operation: Operation, namespace: str) -> None:
        """Make and, in turn, delete objects, every so many milliseconds."""
        await self._creator.namespace(namespace)
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
                with suppress(ApiError):
                    if recreate and place in made:
                        resource, key = made.pop(place)
                        await self._client.delete(resource, *key)
                    else:
                        template = objects.from_template(path, turn, 1, {})
                        made[place] = await self._creator.churned(template, namespace)

    async def _delete_pods(self, operation: Operation) -> None:
        namespace = operation.text("namespace")
        selector = operation.fields.get("labelSelector") or {}
        labels = ",".join(f"{key}={value}" for key, value in selector.items())
        names = [
            pod.name
            for pod in (await self._client.list(WATCHED_PODS, namespace, labels=labels)).items
        ]
        deleting = self._delete(namespace, names, operation.count("deletePodsPerSecond"))
        if operation.flag("skipWaitToCompletion"):
            self._start(deleting)
        else:
            await deleting

    async def _delete(self, namespace: str, names: Sequence[str], rate: int) -> None:
        async def delete(index: int) -> None:
            with suppress(ApiError):
                await self._client.delete(Pod, namespace, names[index])

        if rate:
            await at_rate(self._client, len(names), rate, delete)
        else:
            await many(len(names), delete)

    async def _barrier(self, operation: Operation) -> None:
        attempted = operation.text("stageRequirement") == "Attempted"
        labels = operation.fields.get("labelSelector")
        for namespace in operation.fields.get("namespaces") or list(self._awaited):
            which, count = spread([namespace], labels), self._awaited[namespace]
            await self._progress.until(which, count, attempted=attempted)
            if not attempted:
                del self._awaited[namespace]

    async def _sleep(self, operation: Operation) -> None:
        await self._client.clock.sleep(parse_duration(operation.text("duration", "0s")))

    def _start(self, work: Any) -> None:
        self._background.append(asyncio.ensure_future(work))

    # -- measuring -----------------------------------------------------------------------------

    async def _collect(self, operation: Operation) -> None:
        namespaces = operation.fields.get("namespaces") or ()
        self._measure(spread(namespaces, operation.fields.get("labelSelector")))

    def _measure(self, which: PodSelection) -> None:
        self.begun()
        self._measurement = Measurement(self._progress, which)

    async def _stop_measuring(self, _: Operation | None = None) -> None:
        if self._measurement is not None:
            self.measured = await self._measurement.end()
            self._measurement = None
            self.ended()


def _looks_at_waiting(workload: Workload) -> bool:
    """Whether a step waits for pods that are tried, but need not have got a node."""
    return any(one.text("stageRequirement") == "Attempted" for one in workload.operations)
