"""NodePorts: two pods on one node cannot have the same host port on the same address."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from bayplan.fit.decision import Refusal
from bayplan.fit.fixes import FixKind, Step
from bayplan.fit.plugins.base import EvaluationRequest, Filter, UsageFilter
from bayplan.fit.plugins.capacity import Capacity, EquivalenceClass, Exclusion, HostTopology
from bayplan.fit.plugins.explanation import Explainer, Proposal, Trial, move_pod
from bayplan.fit.plugins.hints import ClusterEvent, Hints, UnschedulablePod, is_new, removed_pod
from bayplan.fit.plugins.plugin import FILTERING, Cause, SchedulerPlugin
from bayplan.fit.signatures.signature import HostPort
from bayplan.fit.state.cluster import ClusterState
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.state.node_usage import clash
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Container, Pod

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(UsageFilter):
    """Host ports must be free."""

    name = NAME

    def __init__(self, request: EvaluationRequest) -> None:
        self._ports = request.signature.ports
        self._cluster = request.cluster

    def passes(self, rows: Rows) -> BoolArray:
        """Return the nodes where all of the ports are free."""
        return self._cluster.slots.without(self._cluster.ports.conflicting(self._ports), rows)

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """Return that one of the ports is in use."""
        return Refusal.unschedulable(NAME, REASON)

    def is_affected_by(self, record: PodRecord) -> bool:
        """Whether the pod uses one of the host ports."""
        return any(clash(port, taken) for port in self._ports for taken in record.signature.ports)


def compile_filter(request: EvaluationRequest) -> Filter | None:
    """Compile the filter, if the pod takes host ports."""
    return NodePorts(request) if request.signature.ports else None


def _pod_may_help(pending: UnschedulablePod, event: ClusterEvent) -> bool:
    """Whether a pod was removed that uses one of the ports."""
    pod = removed_pod(event)
    if pod is None:
        return False
    taken = pending.cluster.signatures.of(pod).ports
    return any(clash(port, other) for port in pending.signature.ports for other in taken)


_HINTS: Hints = {Node: is_new, Pod: _pod_may_help}


def taken_ports(trial: Trial) -> list[tuple[HostPort, str]]:
    """Return the pod's host ports in use on the node, with the key of the pod that uses each."""
    cluster = trial.cluster
    wanted = cluster.signatures.of(trial.pod).ports
    return [
        (port, record.key)
        for record in cluster.pods.by_node.get(trial.name, {}).values()
        for port in wanted
        if any(clash(port, held) for held in record.signature.ports)
    ]


def drop_host_ports(trial: Trial) -> Iterable[Step]:
    """Propose to drop the host ports that are in use on the node."""
    taken = {port for port, _ in taken_ports(trial)}
    if not taken:
        return
    described = ", ".join(f"{port.port}/{port.protocol}" for port in sorted(taken))
    spec = trial.pod.spec
    pod = replace(
        trial.pod,
        spec=replace(
            spec,
            containers=[_without_ports(one, taken) for one in spec.containers],
            init_containers=[_without_ports(one, taken) for one in spec.init_containers],
        ),
    )
    yield Step(FixKind.DROP_HOST_PORT, f"drop host port {described}", 3.5 * len(taken), pod)


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


def _collide(there: EquivalenceClass, coming: EquivalenceClass, _: HostTopology) -> bool:
    """Whether two pods use the same port of one host."""
    ports = coming.signature.ports
    return any(clash(one, other) for one in there.signature.ports for other in ports)


def _free_capacity(_: ClusterState, pods: EquivalenceClass) -> int | None:
    """Return 1, as two of them would use the same ports."""
    return 1 if pods.signature.ports else None


_CAPACITY = Capacity(
    free_capacity=_free_capacity,
    exclusion=Exclusion(may_exclude=lambda pods, _: bool(pods.signature.ports), excludes=_collide),
)
PLUGIN = SchedulerPlugin(
    name=NAME,
    points=FILTERING,
    cause=Cause.PORTS,
    refuses_for_good=True,
    filters=(compile_filter,),
    hints=_HINTS,
    capacity=_CAPACITY,
    explainer=Explainer(
        details=_details,
        proposals=(Proposal(move_pod, tries=True), Proposal(drop_host_ports)),
        least_cost=3.0,
    ),
)
