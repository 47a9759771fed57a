"""A simulated cluster over one API server: all controllers, wired together.

simulation = Simulation(backend, spec, renew_leases=True)
await simulation.prepare()
await simulation.run(until=7200)
"""

from __future__ import annotations

from bayplan.base.configfiles import ConfigFileError
from bayplan.base.suggestions import nearest
from bayplan.embedded.apiserver.errors import StatusError
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.cloud.cloud import Cloud, InstanceBoot
from bayplan.embedded.cloud.provider import CloudProvider
from bayplan.embedded.control.controller import ControllerContext, Create
from bayplan.embedded.control.engine import Engine, random_source
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.sink import ActionSink
from bayplan.embedded.control.view import CLAIMS, CLASSES, CSI_DRIVERS, StoreView
from bayplan.embedded.csi.attachment import AttachDetach, Attacher
from bayplan.embedded.csi.provisioner import PersistentVolumeBinder, Provisioner
from bayplan.embedded.csi.reclaim import StorageProtection, VolumeReclaim
from bayplan.embedded.csi.registration import DriverRegistration
from bayplan.embedded.csi.volumes import VolumeIndex
from bayplan.embedded.nodes.fleet import Fleet, MachineFaults
from bayplan.embedded.nodes.health import LeaseRenewal, NodeHealth
from bayplan.embedded.nodes.kubelet import Kubelets
from bayplan.embedded.nodes.registration import NodeRegistration
from bayplan.embedded.nodes.taints import NodeTaints, TaintEviction
from bayplan.embedded.simulation.clusterfile import ClusterSpec, WorkloadSpec
from bayplan.embedded.simulation.schedule import (
    FaultControl,
    FaultSchedule,
    WorkloadSchedule,
    creation,
)
from bayplan.embedded.workloads.budgets import Budgets
from bayplan.embedded.workloads.daemonsets import DaemonSets
from bayplan.embedded.workloads.deployments import Deployments, ReplicaSets
from bayplan.embedded.workloads.ephemeral import EphemeralClaims
from bayplan.embedded.workloads.jobs import JobOrphans, Jobs
from bayplan.embedded.workloads.statefulsets import StatefulSets


class Simulation:
    """Nodes, drivers, workloads and a cloud over one API server."""

    def __init__(self, backend: Backend, spec: ClusterSpec, *, renew_leases: bool) -> None:
        self.spec = spec
        self._backend = backend
        self.view = StoreView(backend.store)
        rng = random_source(spec.seed, backend.store.revision)
        self.context = ControllerContext(self.view, backend.clock, rng)
        self.faults = self.context.faults
        self.fleet = Fleet(self.context)
        self.cloud = Cloud(self.context, spec.groups, backend.store)
        self.provider = CloudProvider(self.cloud, spec.drivers)
        self.sink = ActionSink(backend)
        self.engine = Engine(backend.store, self.sink, backend.clock)
        self._add_nodes(renew_leases)
        self._add_storage()
        self._add_workloads()
        self.fleet.listeners.append(self._machine_changed)
        self.faults.listeners.append(self._fault_changed)

    def _add_nodes(self, renew_leases: bool) -> None:
        context, fleet, engine = self.context, self.fleet, self.engine
        self._boot = InstanceBoot(context, self.cloud, fleet)
        self._power = MachineFaults(context, fleet)
        self._registration = NodeRegistration(context, fleet)
        self._health = NodeHealth(context, fleet)
        self.leases = LeaseRenewal(context, fleet, periodically=renew_leases)
        for controller in (self._boot, self._power, self._registration, self._health):
            engine.add(controller)
        engine.add(NodeTaints(context))
        engine.add(TaintEviction(context))
        engine.add(self.leases)
        engine.add(FaultSchedule(context, self.spec.faults))
        control = FaultControl(context, self.spec.targets(self.cloud.instances))
        engine.add(control)
        self._backend.admission.validating.append(control.admit)
        self.cloud.listeners.append(lambda name: engine.enqueue(self._boot, name))

    def _add_storage(self) -> None:
        context, drivers = self.context, self.spec.drivers
        self.volumes = VolumeIndex(context, drivers)
        self._kubelets = Kubelets(context, self.fleet, self.volumes)
        self._csi = DriverRegistration(context, self.fleet, drivers)
        self._provisioner = Provisioner(context, drivers)
        self._attacher = Attacher(context, self.fleet, self.volumes, drivers)
        self.engine.add(self._kubelets)
        self.engine.add(self._csi)
        self.engine.add(self._provisioner)
        self.engine.add(PersistentVolumeBinder(context, drivers))
        self.engine.add(AttachDetach(context, self.volumes))
        self.engine.add(self._attacher)
        self.engine.add(VolumeReclaim(context))
        self.engine.add(StorageProtection(context))

    def _add_workloads(self) -> None:
        context, engine = self.context, self.engine
        engine.add(Deployments(context))
        engine.add(ReplicaSets(context))
        engine.add(StatefulSets(context))
        engine.add(DaemonSets(context))
        engine.add(Jobs(context))
        engine.add(JobOrphans(context))
        engine.add(Budgets(context))
        engine.add(EphemeralClaims(context))
        engine.add(WorkloadSchedule(context, self._backend.catalog, self.spec.workloads))

    async def prepare(self) -> None:
        """Create the initial objects; ConfigFileError if the server refuses one."""
        for driver in self.spec.drivers.values():
            await self._ensure(CSI_DRIVERS, driver.csi_driver())
        for class_ in self.spec.classes:
            await self._ensure(CLASSES, class_)
        for instance in self.cloud.instances.values():
            if instance.state == "running":
                self.fleet.add(instance)  # from an earlier run with the same data file
        self.cloud.open()
        for workload in self.spec.workloads:
            await self._prepare_workload(workload)
        self.engine.start()

    async def run(self, until: float | None = None) -> None:
        """Work until a time, in seconds from the start, or until stopped."""
        await self.engine.run(until)

    def now(self) -> float:
        """Return the seconds since the start."""
        return self.engine.now()

    async def refresh_leases(self) -> None:
        """Renew all leases."""
        for step in self.leases.refresh():
            await self.sink.apply(step)

    async def _ensure(self, storage: str, obj: dict[str, object]) -> None:
        await self.sink.apply(Create(storage, obj))

    async def _prepare_workload(self, workload: WorkloadSpec) -> None:
        """Create immediate workloads; check that the kinds of later ones are served."""
        line = self.spec.lines.get(workload.place, 0)
        for obj in workload.objects:
            try:
                step = creation(self._backend.catalog, obj)
                if workload.at <= 0 and not workload.count:
                    await self.sink.create(step.storage, step.object)
            except KeyError as kind:
                message = (
                    f"no such kind is served: {kind}{_suggestion(self._backend.catalog, str(kind))}"
                )
                raise ConfigFileError(self.spec.source, line, workload.place, message) from None
            except StatusError as error:
                if error.reason != "AlreadyExists":
                    place, message = workload.place, error.message
                    raise ConfigFileError(self.spec.source, line, place, message) from None

    def _machine_changed(self, name: str) -> None:
        for controller in (self._power, self._registration, self._health, self._csi):
            self.engine.enqueue(controller, name)
        for key, _ in self.view.pods_on(name):
            self.engine.enqueue(self._kubelets, key)

    def _fault_changed(self, fault: Fault) -> None:
        """Enqueue the keys that a fault may concern."""
        enqueue = self.engine.enqueue
        if fault.kind in ("node-dies", "node-flaps"):
            for name in self.fleet.machines:
                enqueue(self._power, name)
        elif fault.kind == "no-driver":
            for name in self.fleet.machines:
                enqueue(self._csi, name)
        elif fault.kind == "provision-fails":
            for entry in self.view.store.list(CLAIMS):
                enqueue(self._provisioner, entry.key)
        elif fault.kind in ("attach-fails", "detach-sticks"):
            for name in sorted(self.view.attachments):
                enqueue(self._attacher, name)


def _suggestion(catalog: Catalog, kind: str) -> str:
    near = nearest(kind, [f"{one.api_version} {one.kind}" for one in catalog])
    return f"; did you mean {near!r}?" if near else ""
