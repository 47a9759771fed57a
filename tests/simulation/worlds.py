"""Simulated clusters in virtual time for tests, with the few moves that tests make."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.controller import Controller
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.steps import Again, Bind, Change, Create, Delete, Plan
from bayplan.embedded.control.storages import CLAIMS, EVENTS, NODES, PODS
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.embedded.simulation.log import RunLog
from bayplan.embedded.simulation.schedule import creation
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.embedded.simulation.virtual import VirtualRun

DRIVER = "disk.csi.example.com"
CLUSTER = f"""
csiDrivers:
  - name: {DRIVER}
storageClasses:
  - name: standard
    driver: {DRIVER}
    default: true
  - name: at-once
    driver: {DRIVER}
    binding: Immediate
instanceTypes:
  - name: large
    cpu: 8
    memory: 32Gi
    price: 0.5
nodeGroups:
  - name: workers
    instanceType: large
    count: 2
    max: 5
    zones: [zone-a, zone-b]
    drivers:
      - name: {DRIVER}
        limit: 8
"""


class FirstFit(Controller[str]):
    """Places every pod on the first ready node with room for it by count: deliberately simple."""

    name = "first-fit"
    storages = (PODS, NODES)

    def __init__(self, simulation: Simulation, per_node: int = 30) -> None:
        self._view = simulation.view
        self._per_node = per_node
        self._waiting: dict[Key, None] = {}
        self._used: dict[str, int] = {}
        self._ready: list[str] = []

    def notice(self, change: Any) -> list[str]:
        key = change.entry.key
        if key.storage == NODES:
            self._ready = [
                node["metadata"]["name"]
                for node in self._view.all(NODES)
                if not (node["spec"].get("taints"))
            ]
            return ["all"]
        return self._notice_pod(change)

    def _notice_pod(self, change: Any) -> list[str]:
        key = change.entry.key
        node = change.entry.fields.get("spec.nodeName", "")
        done = ("Succeeded", "Failed")
        if change.deleted or change.entry.fields.get("status.phase") in done:
            before = change.previous.fields if change.previous else {}
            if node and before.get("status.phase") not in done:
                self._used[node] = self._used.get(node, 0) - 1
            self._waiting.pop(key, None)
            return ["all"] if self._waiting else []
        if not node:
            self._waiting[key] = None
            return ["all"]
        if not (change.previous and change.previous.fields.get("spec.nodeName")):
            self._waiting.pop(key, None)
            self._used[node] = self._used.get(node, 0) + 1
        return []

    def decide(self, key: str) -> Plan:
        plan: Plan = []
        free = {name: self._per_node - self._used.get(name, 0) for name in self._ready}
        open_nodes = iter([name for name in self._ready if free[name] > 0])
        node = next(open_nodes, None)
        for pod in list(self._waiting):
            while node is not None and free[node] <= 0:
                node = next(open_nodes, None)
            if node is None:
                break
            free[node] -= 1
            plan.append(Bind(pod, node))
        return plan


class World:
    """One cluster in virtual time."""

    def __init__(self, run: VirtualRun) -> None:
        self.run = run
        self.simulation = run.simulation
        self.view = run.simulation.view

    async def forward(self, seconds: float) -> None:
        """Let time go by."""
        await self.simulation.run(self.simulation.pace.now() + seconds)

    async def create(self, *objects: dict[str, Any]) -> None:
        """Create objects, as a client would."""
        for obj in objects:
            step = creation(self.run.plane.backend.catalog, obj)
            await self.simulation.sink.create(step.storage, step.object)

    async def bind(self, pod: str, node: str) -> None:
        await self.simulation.sink.apply(Bind(Key(PODS, "default", pod), node))

    async def edit(self, storage: str, name: str, edit: Callable[[Any], Any]) -> None:
        namespace = "" if storage == NODES else "default"
        await self.simulation.sink.apply(Change(Key(storage, namespace, name), edit))

    async def delete(self, storage: str, name: str, **options: Any) -> None:
        namespace = "" if storage == NODES else "default"
        await self.simulation.sink.apply(Delete(Key(storage, namespace, name), **options))

    def inject(self, name: str = "fault", **fields: Any) -> None:
        self.simulation.faults.inject(name, Fault(**fields))

    def clear(self, name: str = "fault") -> None:
        self.simulation.faults.clear(name)

    def get(self, storage: str, name: str, namespace: str = "default") -> Any:
        cluster_wide = self.run.plane.backend.catalog.stored(storage)
        if cluster_wide is not None and not cluster_wide.namespaced:
            namespace = ""
        return self.view.get(storage, namespace, name)

    def pod(self, name: str) -> Any:
        return self.view.pods.get(Key(PODS, "default", name))

    def claim_phase(self, name: str) -> str:
        return str(self.get(CLAIMS, name)["status"]["phase"])

    def ready(self, node: str) -> str:
        conditions = self.get(NODES, node)["status"]["conditions"]
        return next(one["status"] for one in conditions if one["type"] == "Ready")

    def taints(self, node: str) -> set[tuple[str, str]]:
        taints = self.get(NODES, node)["spec"].get("taints") or ()
        return {(one["key"].rpartition("/")[2], one["effect"]) for one in taints}

    def events(self, reason: str) -> list[Any]:
        return [one for one in self.view.all(EVENTS) if one["reason"] == reason]

    def phases(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for pod in self.view.pods.values():
            found[pod.phase] = found.get(pod.phase, 0) + 1
        return found


@asynccontextmanager
async def world(
    text: str = CLUSTER, *, settle: float = 60.0, placing: bool = False, log: bool = False
) -> AsyncIterator[World]:
    """A cluster whose first nodes are ready."""
    spec = parse_cluster(text.encode(), "cluster.yaml", Path())
    async with VirtualRun(spec) as run:
        if placing:
            run.simulation.engine.add(FirstFit(run.simulation))
        await run.simulation.prepare()
        made = World(run)
        await made.forward(settle)
        yield made


def pod(name: str, *, claims: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    """A pod with some claims."""
    meta = {"name": name, "labels": {"app": "a"}, "annotations": fields.pop("annotations", {})}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}], **fields}
    if claims:
        spec["volumes"] = [
            {"name": f"v{n}", "persistentVolumeClaim": {"claimName": claim}}
            for n, claim in enumerate(claims)
        ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def claim(name: str, storage_class: str = "standard") -> dict[str, Any]:
    """A claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": storage_class,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def workload(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """A workload whose pods have the label app=<name>."""
    template = spec.pop("template", {"containers": [{"name": "c", "image": "i"}]})
    labels = {"app": name}
    body: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": template}}
    if kind != "Job":
        body["selector"] = {"matchLabels": labels}
    api = "batch/v1" if kind == "Job" else "apps/v1"
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name},
        "spec": {**body, **spec},
    }


__all__ = ["Again", "Create", "RunLog", "World", "claim", "pod", "workload", "world"]
