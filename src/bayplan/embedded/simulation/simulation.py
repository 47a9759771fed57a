"""A whole simulated cluster over one API server: every part made, wired and run.

simulation = Simulation(backend, spec, renew_leases=True)
await simulation.prepare()
await simulation.run(until=7200)
"""

from __future__ import annotations

from bayplan.base.configfiles import ConfigFileError
from bayplan.base.suggestions import nearest
from bayplan.embedded.apiserver.errors import ApiError
from bayplan.embedded.apiserver.kinds.catalog import Catalog
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.cloud.cloud import Boot, Cloud
from bayplan.embedded.cloud.provider import CloudProvider
from bayplan.embedded.control.controller import Create, Stage
from bayplan.embedded.control.engine import Engine, dice
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.sink import Sink
from bayplan.embedded.control.view import CLAIMS, CLASSES, CSI_DRIVERS, View
from bayplan.embedded.csi.attachment import AttachDetach, Attacher
from bayplan.embedded.csi.provisioner import Binder, Provisioner
from bayplan.embedded.csi.reclaim import Protection, Reclaim
from bayplan.embedded.csi.registration import DriverRegistration
from bayplan.embedded.csi.volumes import Volumes
from bayplan.embedded.nodes.fleet import Fleet, Power
from bayplan.embedded.nodes.health import Health, Leases
from bayplan.embedded.nodes.kubelet import Kubelets
from bayplan.embedded.nodes.registration import Registration
from bayplan.embedded.nodes.taints import Eviction, Taints
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
    """Nodes, drivers, workloads and a cloud around one API server."""

    def __init__(self, backend: Backend, spec: ClusterSpec, *, renew_leases: bool) -> None:
        self.spec = spec
        self._backend = backend
        self.view = View(backend.store)
        rng = dice(spec.seed, backend.store.revision)
        self.stage = Stage(self.view, backend.clock, rng)
        self.faults = self.stage.faults
        self.fleet = Fleet(self.stage)
        self.cloud = Cloud(self.stage, spec.groups, backend.store)
        self.provider = CloudProvider(self.cloud, spec.drivers)
        self.sink = Sink(backend)
        self.engine = Engine(backend.store, self.sink, backend.clock)
        self._add_nodes(renew_leases)
        self._add_storage()
        self._add_workloads()
        self.fleet.listeners.append(self._machine_changed)
        self.faults.listeners.append(self._fault_changed)

    def _add_nodes(self, renew_leases: bool) -> None:
        stage, fleet, engine = self.stage, self.fleet, self.engine
        self._boot = Boot(stage, self.cloud, fleet)
        self._power = Power(stage, fleet)
        self._registration = Registration(stage, fleet)
        self._health = Health(stage, fleet)
        self.leases = Leases(stage, fleet, periodically=renew_leases)
        for controller in (self._boot, self._power, self._registration, self._health):
            engine.add(controller)
        engine.add(Taints(stage))
        engine.add(Eviction(stage))
        engine.add(self.leases)
        engine.add(FaultSchedule(stage, self.spec.faults))
        control = FaultControl(stage, self.spec.targets(self.cloud.instances))
        engine.add(control)
        self._backend.admission.validating.append(control.admit)
        self.cloud.listeners.append(lambda name: engine.ask(self._boot, name))

    def _add_storage(self) -> None:
        stage, drivers = self.stage, self.spec.drivers
        self.volumes = Volumes(stage, drivers)
        self._kubelets = Kubelets(stage, self.fleet, self.volumes)
        self._csi = DriverRegistration(stage, self.fleet, drivers)
        self._provisioner = Provisioner(stage, drivers)
        self._attacher = Attacher(stage, self.fleet, self.volumes, drivers)
        self.engine.add(self._kubelets)
        self.engine.add(self._csi)
        self.engine.add(self._provisioner)
        self.engine.add(Binder(stage, drivers))
        self.engine.add(AttachDetach(stage, self.volumes))
        self.engine.add(self._attacher)
        self.engine.add(Reclaim(stage))
        self.engine.add(Protection(stage))

    def _add_workloads(self) -> None:
        stage, engine = self.stage, self.engine
        engine.add(Deployments(stage))
        engine.add(ReplicaSets(stage))
        engine.add(StatefulSets(stage))
        engine.add(DaemonSets(stage))
        engine.add(Jobs(stage))
        engine.add(JobOrphans(stage))
        engine.add(Budgets(stage))
        engine.add(EphemeralClaims(stage))
        engine.add(WorkloadSchedule(stage, self._backend.catalog, self.spec.workloads))

    async def prepare(self) -> None:
        """Make what is there from the beginning; ConfigFileError if the server refuses it."""
        for driver in self.spec.drivers.values():
            await self._ensure(CSI_DRIVERS, driver.csi_driver())
        for class_ in self.spec.classes:
            await self._ensure(CLASSES, class_)
        for instance in self.cloud.instances.values():
            if instance.state == "running":
                self.fleet.add(instance)  # from an earlier run, kept in a data file
        self.cloud.open()
        for workload in self.spec.workloads:
            await self._prepare_workload(workload)
        self.engine.start()

    async def run(self, until: float | None = None) -> None:
        """Work until a moment, in seconds from the beginning, or until stopped."""
        await self.engine.run(until)

    def now(self) -> float:
        """Seconds since the beginning."""
        return self.engine.now()

    async def refresh_leases(self) -> None:
        """Let all leases show the last heartbeats."""
        for step in self.leases.refresh():
            await self.sink.apply(step)

    async def _ensure(self, storage: str, obj: dict[str, object]) -> None:
        await self.sink.apply(Create(storage, obj))

    async def _prepare_workload(self, workload: WorkloadSpec) -> None:
        """Create what comes at once; what comes later is at least of a kind that is served."""
        line = self.spec.lines.get(workload.place, 0)
        for obj in workload.objects:
            try:
                step = creation(self._backend.catalog, obj)
                if workload.at <= 0 and not workload.count:
                    await self.sink.create(step.storage, step.object)
            except KeyError as kind:
                said = f"nothing here serves {kind}{_meant(self._backend.catalog, str(kind))}"
                raise ConfigFileError(self.spec.source, line, workload.place, said) from None
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    place, said = workload.place, error.message
                    raise ConfigFileError(self.spec.source, line, place, said) from None

    def _machine_changed(self, name: str) -> None:
        for controller in (self._power, self._registration, self._health, self._csi):
            self.engine.ask(controller, name)
        for key, _ in self.view.pods_on(name):
            self.engine.ask(self._kubelets, key)

    def _fault_changed(self, fault: Fault) -> None:
        """Ask those again whom a fault may concern."""
        ask = self.engine.ask
        if fault.kind in ("node-dies", "node-flaps"):
            for name in self.fleet.machines:
                ask(self._power, name)
        elif fault.kind == "no-driver":
            for name in self.fleet.machines:
                ask(self._csi, name)
        elif fault.kind == "provision-fails":
            for entry in self.view.store.list(CLAIMS):
                ask(self._provisioner, entry.key)
        elif fault.kind in ("attach-fails", "detach-sticks"):
            for name in sorted(self.view.attachments):
                ask(self._attacher, name)


def _meant(catalog: Catalog, kind: str) -> str:
    near = nearest(kind, [f"{one.api_version} {one.kind}" for one in catalog])
    return f"; did you mean {near!r}?" if near else ""
