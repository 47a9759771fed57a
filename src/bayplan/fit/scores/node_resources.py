"""NodeResourcesFit and NodeResourcesBalancedAllocation: emptier nodes, and evenly used ones.

Both look at cpu and memory. The first likes what would be left free, counting a default for
containers that request nothing. The second likes a pod that makes a node's use more even: 75 where
it changes nothing, up to 100 where it helps, down to 50 where it hurts.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.filters.base import Question, Reads
from bayplan.fit.scores.base import MAX_SCORE, LocalScore, Score
from bayplan.fit.state.columns import IntArray, Rows
from bayplan.fit.state.resources import CPU_AND_MEMORY
from bayplan.kube.resources import CPU, MEMORY

LEAST_ALLOCATED = "NodeResourcesFit"
BALANCED = "NodeResourcesBalancedAllocation"


class LeastAllocated(LocalScore):
    """The share of cpu and memory that would be left, on average."""

    name = LEAST_ALLOCATED
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._resources = question.cluster.resources
        self._pod = np.array(question.shape.nonzero, dtype=np.int64)

    def points(self, rows: Rows) -> IntArray:
        """Points by what would be left."""
        total = self._resources.allocatable[rows, CPU_AND_MEMORY]
        left = total - self._resources.nonzero[rows] - self._pod
        shares = np.maximum(left, 0) * MAX_SCORE // np.maximum(total, 1)
        present = np.maximum((total > 0).sum(axis=1), 1)
        points: IntArray = shares.sum(axis=1) // present
        return points


class Balanced(LocalScore):
    """How much more even the use of cpu and memory becomes."""

    name = BALANCED
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._resources = question.cluster.resources
        requests = question.shape.requests
        self._pod = np.array([requests.get(CPU, 0), requests.get(MEMORY, 0)], dtype=np.int64)

    def points(self, rows: Rows) -> IntArray:
        """Points by the change of balance."""
        resources = self._resources
        total = resources.allocatable[rows, CPU_AND_MEMORY]
        used = total - resources.free[rows, CPU_AND_MEMORY] + self._pod
        shares = np.minimum(used / np.maximum(total, 1), 1.0)
        deviation = np.abs((shares[:, 0] - shares[:, 1]) / 2)
        deviation[(total == 0).any(axis=1)] = 0.0
        after = ((1 - deviation) * MAX_SCORE).astype(np.int64)
        half = MAX_SCORE // 2
        points: IntArray = half + (half + after - resources.balance[rows]) // 2
        return points


def compile_least_allocated(question: Question) -> Score | None:
    """The score for emptier nodes."""
    return LeastAllocated(question)


def compile_balanced(question: Question) -> Score | None:
    """The score for even use, unless the pod requests neither cpu nor memory."""
    requests = question.shape.requests
    return Balanced(question) if CPU in requests or MEMORY in requests else None
