"""NodePorts: two pods on one node cannot have the same host port on the same address."""

from __future__ import annotations

from bayplan.fit.events import Event
from bayplan.fit.plugins.base import Filter, Question, UsageFilter
from bayplan.fit.plugins.hints import Hints, Waiting, arrival, gone
from bayplan.fit.plugins.plugin import FILTERING, Plugin
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.columns import BoolArray, Rows
from bayplan.fit.state.node_usage import clash
from bayplan.fit.state.pods import PodRecord
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts(UsageFilter):
    """Host ports."""

    name = NAME

    def __init__(self, question: Question) -> None:
        self._ports = question.shape.ports
        self._cluster = question.cluster

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes where all of the ports are free."""
        return self._cluster.slots.without(self._cluster.ports.conflicting(self._ports), rows)

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """One of the ports is taken."""
        return Refusal.unschedulable(NAME, REASON)

    def heeds(self, record: PodRecord) -> bool:
        """Those that have one of the ports."""
        return any(clash(port, taken) for port in self._ports for taken in record.shape.ports)


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod takes host ports."""
    return NodePorts(question) if question.shape.ports else None


def _pod_may_help(waiting: Waiting, event: Event) -> bool:
    """A pod went that has one of the ports."""
    pod = gone(event)
    if pod is None:
        return False
    taken = waiting.cluster.shapes.of(pod).ports
    return any(clash(port, other) for port in waiting.shape.ports for other in taken)


_HINTS: Hints = {Node: arrival, Pod: _pod_may_help}


PLUGIN = Plugin(
    name=NAME,
    points=FILTERING,
    filters=(compile_filter,),
    hints=_HINTS,
)
