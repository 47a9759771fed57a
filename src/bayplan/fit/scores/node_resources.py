"""NodeResourcesFit and NodeResourcesBalancedAllocation: emptier nodes, and evenly used ones.

Both look at cpu and memory. The first likes what would be left free, counting a default for
containers that request nothing. The second likes a pod that makes a node's use more even: 75 where
it changes nothing, up to 100 where it helps, down to 50 where it hurts.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.filters.base import Question, Reads
from bayplan.fit.plugins import DEFAULT_PLUGINS
from bayplan.fit.scores.allocation import AllocationScore, BalancedScore
from bayplan.fit.scores.base import MAX_SCORE, LocalScore, Score
from bayplan.fit.state.columns import IntArray, Rows, constant, pick
from bayplan.kube.resources import CPU, MEMORY

LEAST_ALLOCATED = "NodeResourcesFit"
BALANCED = "NodeResourcesBalancedAllocation"
NONE, ONE, FULL = constant(0), constant(1), constant(MAX_SCORE)
HALF, WHOLE, MOST = np.array(0.5), np.array(1.0), np.array(float(MAX_SCORE))


class LeastAllocated(LocalScore):
    """The share of cpu and memory that would be left, on average."""

    name = LEAST_ALLOCATED
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._columns = question.cluster.resources.scored
        self._pod = np.array(question.shape.nonzero, dtype=np.int64)

    def points(self, rows: Rows) -> IntArray:
        """Points by what would be left."""
        left: IntArray = pick(self._columns.left, rows) - self._pod
        np.maximum(left, NONE, out=left)
        left *= FULL
        left //= pick(self._columns.total, rows)
        points: IntArray = left[:, 0] + left[:, 1]
        if self._columns.lopsided:
            points //= self._columns.present[rows]
        else:
            points >>= ONE  # all have both
        return points


class Balanced(LocalScore):
    """How much more even the use of cpu and memory becomes."""

    name = BALANCED
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._columns = question.cluster.resources.scored
        requests = question.shape.requests
        self._pod = np.array([requests.get(CPU, 0), requests.get(MEMORY, 0)], dtype=np.float64)
        self._may_exceed = LEAST_ALLOCATED not in question.plugins.filters
        """Whether pods may go where they do not fit."""

    def points(self, rows: Rows) -> IntArray:
        """Points by the change of balance."""
        columns = self._columns
        shares = pick(columns.used, rows) + self._pod
        shares /= pick(columns.total_float, rows)
        if columns.overcommitted or self._may_exceed:
            np.minimum(shares, WHOLE, out=shares)
        even = shares[:, 0] - shares[:, 1]
        even *= HALF
        np.abs(even, out=even)
        np.subtract(WHOLE, even, out=even)
        if columns.lopsided:
            even[columns.present[rows] < 2] = 1.0
        even *= MOST
        points = even.astype(np.int64)
        points += columns.unevenness[rows]
        points >>= ONE  # halves, as it is never negative
        return points


def compile_fit(question: Question) -> Score | None:
    """The score of what is requested, by the profile's strategy."""
    if question.plugins.scoring == DEFAULT_PLUGINS.scoring:
        return LeastAllocated(question)
    return AllocationScore(question)


def compile_balanced(question: Question) -> Score | None:
    """The score for even use, unless the pod requests none of what is balanced."""
    requests, balanced = question.shape.requests, question.plugins.balanced_resources
    if not any(requests.get(name) for name in balanced):
        return None
    if balanced == DEFAULT_PLUGINS.balanced_resources:
        return Balanced(question)
    return BalancedScore(question)
