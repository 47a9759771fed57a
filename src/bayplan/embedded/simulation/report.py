"""How a simulated cluster stands, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bayplan.embedded.apiserver.jsontypes import JsonObject
from bayplan.embedded.control.faults import Fault
from bayplan.embedded.control.storages import CLAIMS, CSI_NODES, NODES
from bayplan.embedded.control.view import View
from bayplan.embedded.csi.claims import phase
from bayplan.embedded.nodes.objects import condition_status
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.embedded.simulation.troubles import Stuck, Waiting, stuck, waiting
from bayplan.kube.attachlimits import keys_of, limit_in

__all__ = ["Booting", "NodeLine", "Stuck", "Summary", "Waiting", "driver_limits", "summarize"]


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node."""

    name: str
    group: str
    ready: str
    pods: int
    volumes: dict[str, tuple[int, int | None]]
    """By driver: attached, and the limit that CSINode says or the node publishes (None: none)."""
    cordoned: bool = False
    silent: float | None = None
    """For how many seconds its kubelet has been silent, if it is."""


@dataclass(frozen=True, slots=True)
class Booting:
    """An instance that was bought and is no node yet."""

    name: str
    group: str
    left: float | None
    """Seconds until it is there; None if nobody knows."""
    error: str = ""
    """Why it could not be had, if it could not."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The whole cluster."""

    seconds: float
    nodes: list[NodeLine]
    phases: Counter[str]
    claims: Counter[str]
    waiting: list[Waiting]
    warnings: Counter[str]
    spent: float
    instances: Counter[str]
    faults: list[str] = field(default_factory=list)
    booting: list[Booting] = field(default_factory=list)
    stuck: list[Stuck] = field(default_factory=list)

    @property
    def ready(self) -> int:
        """How many nodes are ready."""
        return sum(node.ready == "True" for node in self.nodes)

    @property
    def untried(self) -> int:
        """How many pods wait for the default scheduler, which does not seem to be there."""
        return sum(one.untried and not one.scheduler for one in self.waiting)


def summarize(simulation: Simulation) -> Summary:
    """How the cluster stands now."""
    view = simulation.view
    claims = Counter(phase(claim) for claim in view.all(CLAIMS))
    return Summary(
        seconds=simulation.now(),
        nodes=[_node(simulation, node) for node in view.all(NODES)],
        phases=Counter(pod.phase for pod in view.pods.values()),
        claims=claims,
        waiting=waiting(simulation),
        warnings=Counter(simulation.sink.recorder.warnings),
        spent=simulation.cloud.spent(),
        instances=Counter(one.state for one in simulation.cloud.instances.values()),
        faults=sorted(_named(fault) for fault in simulation.faults.active.values()),
        booting=_booting(simulation),
        stuck=stuck(simulation),
    )


def _node(simulation: Simulation, node: JsonObject) -> NodeLine:
    name = node["metadata"]["name"]
    machine = simulation.fleet.find(name)
    silent = machine.silent_since if machine is not None else None
    return NodeLine(
        name=name,
        group=machine.instance.group.name if machine is not None else "",
        ready=condition_status(node, "Ready") or "Unknown",
        pods=simulation.view.count_on(name),
        volumes=_volumes(simulation, name),
        cordoned=bool((node.get("spec") or {}).get("unschedulable")),
        silent=None if silent is None else simulation.stage.seconds() - silent,
    )


def _booting(simulation: Simulation) -> list[Booting]:
    now = simulation.stage.seconds()
    return [
        Booting(one.name, one.group.name, _left(one.starts, now), one.error)
        for one in simulation.cloud.instances.values()
        if simulation.view.get(NODES, "", one.name) is None
    ]


def _left(starts: float | None, now: float) -> float | None:
    return None if starts is None else max(0.0, starts - now)


def _named(fault: Fault) -> str:
    """A fault and whom it strikes: `node-dies workers-1`."""
    aimed = (fault.node, fault.group, fault.driver, fault.zone)
    return " ".join(part for part in (fault.kind, *aimed) if part)


def driver_limits(view: View, node: str) -> dict[str, int | None]:
    """By driver on a node, the limit that CSINode says or the node publishes; None: none."""
    csi_node = view.get(CSI_NODES, "", node) or {}
    found = {}
    for driver in (csi_node.get("spec") or {}).get("drivers") or ():
        name, limit = driver["name"], (driver.get("allocatable") or {}).get("count")
        found[name] = _published(view, node, name) if limit is None else limit
    return found


def _volumes(simulation: Simulation, node: str) -> dict[str, tuple[int, int | None]]:
    attached = Counter(
        one.spec.attacher for one in simulation.view.attachments_on(node) if one.status.attached
    )
    limits = driver_limits(simulation.view, node)
    return {driver: (attached[driver], limit) for driver, limit in limits.items()}


def _published(view: View, node: str, driver: str) -> int | None:
    status = (view.get(NODES, "", node) or {}).get("status") or {}
    amounts = status.get("allocatable") or {}
    said = (limit_in(amounts[key]) for key in keys_of(driver) if key in amounts)
    return next((limit for limit in said if limit is not None), None)
