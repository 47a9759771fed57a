"""NodePorts: two pods on one node cannot have the same host port on the same address."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.events import Event
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import Filter, Question, UsageFilter
from bayplan.fit.plugins.capacity import AlikePods, Capacity, Exclusion, OneNode
from bayplan.fit.plugins.hints import Hints, Waiting, arrival, gone
from bayplan.fit.plugins.moves import move_a_pod
from bayplan.fit.plugins.plugin import FILTERING, Cause, Plugin
from bayplan.fit.plugins.trial import Explaining, Proposal, Trial
from bayplan.fit.refusal import Refusal
from bayplan.fit.signatures.signature import HostPort
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.state.node_usage import clash
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Container, Pod

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(UsageFilter):
    """Host ports."""

    name = NAME

    def __init__(self, question: Question) -> None:
        self._ports = question.signature.ports
        self._cluster = question.cluster

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes where all of the ports are free."""
        return self._cluster.slots.without(self._cluster.ports.conflicting(self._ports), rows)

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """One of the ports is taken."""
        return Refusal.unschedulable(NAME, REASON)

    def heeds(self, record: PodRecord) -> bool:
        """Those that have one of the ports."""
        return any(clash(port, taken) for port in self._ports for taken in record.signature.ports)


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod takes host ports."""
    return NodePorts(question) if question.signature.ports else None


def _pod_may_help(waiting: Waiting, event: Event) -> bool:
    """A pod went that has one of the ports."""
    pod = gone(event)
    if pod is None:
        return False
    taken = waiting.cluster.signatures.of(pod).ports
    return any(clash(port, other) for port in waiting.signature.ports for other in taken)


_HINTS: Hints = {Node: arrival, Pod: _pod_may_help}


def taken_ports(trial: Trial) -> list[tuple[HostPort, str]]:
    """The host ports that the pod wants and another has on the node, with that one's key."""
    cluster = trial.cluster
    wanted = cluster.signatures.of(trial.pod).ports
    return [
        (port, record.key)
        for record in cluster.pods.by_node.get(trial.name, {}).values()
        for port in wanted
        if any(clash(port, held) for held in record.signature.ports)
    ]


def drop_host_ports(trial: Trial) -> Iterable[Step]:
    """Do without the host ports that are taken on the node."""
    taken = {port for port, _ in taken_ports(trial)}
    if not taken:
        return
    said = ", ".join(f"{port.port}/{port.protocol}" for port in sorted(taken))
    spec = trial.pod.spec
    pod = replace(
        trial.pod,
        spec=replace(
            spec,
            containers=[_without_ports(one, taken) for one in spec.containers],
            init_containers=[_without_ports(one, taken) for one in spec.init_containers],
        ),
    )
    yield Step(FixKind.DROP_HOST_PORT, f"do without host port {said}", 3.5 * len(taken), pod)


def _without_ports(container: Container, taken: set[HostPort]) -> Container:
    numbers = {(port.port, port.protocol) for port in taken}
    ports = [
        replace(port, host_port=0) if (port.host_port, port.protocol or "TCP") in numbers else port
        for port in container.ports
    ]
    return replace(container, ports=ports)


def _details(trial: Trial) -> list[str]:
    return [
        f"host port {port.port}/{port.protocol} is taken by pod {key}"
        for port, key in taken_ports(trial)
    ]


def _collide(there: AlikePods, coming: AlikePods, _: OneNode) -> bool:
    """Whether two pods want the same port of one host."""
    ports = coming.signature.ports
    return any(clash(one, other) for one in there.signature.ports for other in ports)


def _room(_: Cluster, pods: AlikePods) -> int | None:
    """Two of them want the same ports."""
    return 1 if pods.signature.ports else None


_CAPACITY = Capacity(
    room=_room,
    exclusion=Exclusion(may=lambda pods, _: bool(pods.signature.ports), keeps_off=_collide),
)
PLUGIN = Plugin(
    name=NAME,
    points=FILTERING,
    cause=Cause.PORTS,
    for_good=True,
    filters=(compile_filter,),
    hints=_HINTS,
    capacity=_CAPACITY,
    explaining=Explaining(
        details=_details,
        proposals=(Proposal(move_a_pod, tries=True), Proposal(drop_host_ports)),
        least_cost=3.0,
    ),
)
