"""NodeResourcesFit: what a pod requests must be free, and the node must have room for a pod."""

from __future__ import annotations

import numpy as np

from bayplan.fit.filters.base import Filter, Question, Reads
from bayplan.fit.refusal import UNRESOLVABLE, UNSCHEDULABLE, Refusal
from bayplan.fit.state.columns import BoolArray, Rows, pick
from bayplan.kube.resources import CPU, EPHEMERAL_STORAGE, MEMORY

NAME = "NodeResourcesFit"
TOO_MANY_PODS = "Too many pods"
FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


class NodeResourcesFit:
    """Requests against what is free."""

    name = NAME
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._resources = question.cluster.resources
        self._need = self._resources.need(question.shape)
        self._requests = question.shape.requests

    def passes(self, rows: Rows) -> BoolArray:
        """Nodes with enough of everything."""
        free = pick(self._resources.free, rows)
        width = len(self._need)
        if free.shape[1] != width:  # somebody asked for a resource that was new since
            free = free[:, :width]
        passes: BoolArray = np.logical_and.reduce(free >= self._need, axis=1)
        return passes

    def refusal(self, slot: int) -> Refusal:
        """Everything that is short; lasting if the node is too small even when empty."""
        short = self.shortages(slot)
        reasons = [TOO_MANY_PODS] if self._resources.free[slot, 0] < 1 else []
        reasons += [f"Insufficient {name}" for name in short]
        too_small = any(
            wanted > int(self._resources.allocatable[slot, self._resources.columns[name]])
            for name, (wanted, _) in short.items()
        )
        return Refusal(UNRESOLVABLE if too_small else UNSCHEDULABLE, NAME, tuple(reasons))

    def shortages(self, slot: int) -> dict[str, tuple[int, int]]:
        """What is short on a node: by resource what is wanted and what is free."""
        others = sorted(set(self._requests) - set(FIRST))
        found = {}
        for name in (*(n for n in FIRST if n in self._requests), *others):
            wanted = self._requests[name]
            free = int(self._resources.free[slot, self._resources.columns[name]])
            if wanted > free:
                found[name] = (wanted, free)
        return found


def compile_filter(question: Question) -> Filter | None:
    """The filter."""
    return NodeResourcesFit(question)
