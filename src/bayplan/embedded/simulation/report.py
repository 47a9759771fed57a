"""How a simulated cluster stands, in numbers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.control.storages import CLAIMS, CSI_NODES, NODES
from bayplan.embedded.csi.claims import phase
from bayplan.embedded.nodes.objects import condition_status
from bayplan.embedded.simulation.simulation import Simulation


@dataclass(frozen=True, slots=True)
class NodeLine:
    """One node."""

    name: str
    group: str
    ready: str
    pods: int
    volumes: dict[str, tuple[int, int | None]]
    """By driver: attached, and the limit that CSINode says (None: none)."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod without a node, and what was said about it."""

    key: Key
    said: str


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

    @property
    def ready(self) -> int:
        """How many nodes are ready."""
        return sum(node.ready == "True" for node in self.nodes)


def summarize(simulation: Simulation) -> Summary:
    """How the cluster stands now."""
    view = simulation.view
    claims = Counter(phase(claim) for claim in view.all(CLAIMS))
    return Summary(
        seconds=simulation.now(),
        nodes=_nodes(simulation),
        phases=Counter(pod.phase for pod in view.pods.values()),
        claims=claims,
        waiting=_waiting(simulation),
        warnings=Counter(simulation.sink.recorder.warnings),
        spent=simulation.cloud.spent(),
        instances=Counter(one.state for one in simulation.cloud.instances.values()),
        faults=sorted(fault.kind for fault in simulation.faults.active.values()),
    )


def _nodes(simulation: Simulation) -> list[NodeLine]:
    view = simulation.view
    lines = []
    for node in view.all(NODES):
        name = node["metadata"]["name"]
        machine = simulation.fleet.find(name)
        group = machine.instance.group.name if machine is not None else ""
        volumes = _volumes(simulation, name)
        ready = condition_status(node, "Ready") or "Unknown"
        lines.append(NodeLine(name, group, ready, view.count_on(name), volumes))
    return lines


def _volumes(simulation: Simulation, node: str) -> dict[str, tuple[int, int | None]]:
    csi_node = simulation.view.get(CSI_NODES, "", node) or {}
    attached = Counter(
        one.spec.attacher for one in simulation.view.attachments_on(node) if one.status.attached
    )
    return {
        driver["name"]: (attached[driver["name"]], (driver.get("allocatable") or {}).get("count"))
        for driver in (csi_node.get("spec") or {}).get("drivers") or ()
    }


def _waiting(simulation: Simulation) -> list[Waiting]:
    found = []
    for key, pod in sorted(simulation.view.pods.items()):
        if pod.node or pod.terminal:
            continue
        condition = pod.condition("PodScheduled")
        said = (condition.message or condition.reason or "") if condition is not None else ""
        found.append(Waiting(key, said))
    return found
