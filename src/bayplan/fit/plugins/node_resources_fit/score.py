"""NodeResourcesFit: emptier nodes are better.

It looks at cpu and memory, and likes what would be left free, counting a default for containers
that request nothing.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.plugin_set import DEFAULT_PLUGINS
from bayplan.fit.plugins.base import Question, Reads
from bayplan.fit.plugins.node_resources_fit.allocation import AllocationScore
from bayplan.fit.plugins.node_resources_fit.filter import NAME
from bayplan.fit.plugins.scores import MAX_SCORE, LocalScore, Score
from bayplan.fit.state.columns import IntArray, Rows, constant, pick

NONE, ONE, FULL = constant(0), constant(1), constant(MAX_SCORE)


class LeastAllocated(LocalScore):
    """The share of cpu and memory that would be left, on average."""

    name = NAME
    reads = Reads.USAGE

    def __init__(self, question: Question) -> None:
        self._columns = question.cluster.resources.scored
        self._pod = np.array(question.signature.nonzero, dtype=np.int64)

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


def compile_score(question: Question) -> Score | None:
    """The score of what is requested, by the profile's strategy."""
    if question.plugins.scoring == DEFAULT_PLUGINS.scoring:
        return LeastAllocated(question)
    return AllocationScore(question)
