"""Simulated clusters in virtual time, with the few actions that tests take."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bayplan.embedded.apiserver.store.entry import ObjectKey
from bayplan.embedded.control.controller import Bind, Delete, Update
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.view import CLAIMS, EVENTS, NODES, PODS
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.embedded.simulation.schedule import creation
from bayplan.lab import Daemon, VirtualLab
from tests.embedded.simulation.first_fit import FirstFit

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


class VirtualCluster:
    """One cluster in virtual time."""

    def __init__(self, run: VirtualLab) -> None:
        self.run = run
        self.simulation = run.simulation
        self.view = run.simulation.view

    async def forward(self, seconds: float) -> None:
        """Let time go by."""
        await self.run.forward(seconds)

    async def create(self, *objects: dict[str, Any]) -> None:
        """Create objects, as a client would."""
        for obj in objects:
            step = creation(self.run.plane.backend.catalog, obj)
            await self.simulation.sink.create(step.storage, step.object)

    async def bind(self, pod: str, node: str) -> None:
        await self.simulation.sink.apply(Bind(ObjectKey(PODS, "default", pod), node))

    async def edit(self, storage: str, name: str, edit: Callable[[Any], Any]) -> None:
        namespace = "" if storage == NODES else "default"
        await self.simulation.sink.apply(Update(ObjectKey(storage, namespace, name), edit))

    async def delete(self, storage: str, name: str, **options: Any) -> None:
        namespace = "" if storage == NODES else "default"
        await self.simulation.sink.apply(Delete(ObjectKey(storage, namespace, name), **options))

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
        return self.view.pods.get(ObjectKey(PODS, "default", name))

    def claim_phase(self, name: str) -> str:
        return str(self.get(CLAIMS, name)["status"]["phase"])

    def ready(self, node: str) -> str:
        conditions = self.get(NODES, node)["status"]["conditions"]
        return str(next(one["status"] for one in conditions if one["type"] == "Ready"))

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
async def virtual_cluster(
    text: str = CLUSTER,
    *,
    settle: float = 60.0,
    placing: bool = False,
    daemons: Sequence[Daemon] = (),
) -> AsyncIterator[VirtualCluster]:
    """A cluster whose first nodes are ready."""
    spec = parse_cluster(text.encode(), "cluster.yaml", Path())
    run = VirtualLab(spec, daemons)
    if placing:
        run.simulation.engine.add(FirstFit(run.simulation.view))
    async with run:
        made = VirtualCluster(run)
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
