"""NodePorts: two pods on one node cannot have the same host port on the same address."""

from __future__ import annotations

import numpy as np

from bayplan.fit.filters.base import Filter, Question, Reads
from bayplan.fit.refusal import Refusal
from bayplan.fit.state.columns import BoolArray, Rows

NAME = "NodePorts"
REASON = "node(s) didn't have free ports for the requested pod ports"


class NodePorts:
    """Host ports."""

    name = NAME
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._ports = question.shape.ports
        self._cluster = question.cluster

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes where all of the ports are free."""
        mask = np.ones(self._cluster.slots.capacity, dtype=np.bool_)
        mask[list(self._cluster.ports.conflicting(self._ports))] = False
        return mask[rows]

    def refusal(self, slot: int) -> Refusal:  # noqa: ARG002 - the same for every node
        """One of the ports is taken."""
        return Refusal.unschedulable(NAME, REASON)


def compile_filter(question: Question) -> Filter | None:
    """The filter, if the pod takes host ports."""
    return NodePorts(question) if question.shape.ports else None
