"""What all scores have in common.

A local score is final for each node by itself. A relative one compares the nodes that are feasible,
so its answer for one node can change when another node becomes feasible or full.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from bayplan.fit.plugins.base import Reads
from bayplan.fit.state.columns import BoolArray, IntArray, NodeTally, Rows

MAX_SCORE = 100


class Score(ABC):
    """A score, compiled for one question."""

    name: ClassVar[str]
    weight: int = 1
    """What the plugin set has it weigh."""


class LocalScore(Score):
    """A score of each node by itself."""

    reads: ClassVar[Reads]

    @abstractmethod
    def points(self, rows: Rows) -> IntArray:
        """Points from 0 to 100 for these slots' nodes."""


class RelativeScore(Score):
    """A score that compares the feasible nodes with each other."""

    flat_points: ClassVar[int] = 0
    """What it gives all nodes while it is flat."""

    @property
    def is_flat(self) -> bool:
        """Whether it now gives all feasible nodes the same."""
        return False

    @property
    def stays_flat(self) -> bool:
        """Whether it stays flat until nodes, namespaces or the terms of running pods change."""
        return False

    @property
    def is_silent(self) -> bool:
        """Whether it has nothing to say at all now."""
        return False

    @abstractmethod
    def points(self, feasible: BoolArray) -> IntArray:
        """Points from 0 to 100 by slot; what it says of infeasible slots means nothing."""


def proportional(raw: IntArray, feasible: BoolArray, *, reverse: bool) -> IntArray:
    """Counts scaled to 0 to 100 by the largest of the feasible nodes; reversed, less is better."""
    largest = int(raw[feasible].max(initial=0))
    if largest == 0:
        return np.full_like(raw, MAX_SCORE if reverse else 0)
    points = raw * MAX_SCORE // largest
    return MAX_SCORE - points if reverse else points


class CountedScore(RelativeScore):
    """A relative score that scales a count of something on the node object."""

    more_is_better: ClassVar[bool]

    def __init__(self, tally: NodeTally) -> None:
        self._tally = tally

    @property
    def is_flat(self) -> bool:
        """Whether no node has any of what is counted."""
        return self._tally.is_zero

    @property
    def stays_flat(self) -> bool:
        """Only nodes matter."""
        return self.is_flat

    def points(self, feasible: BoolArray) -> IntArray:
        """Counts scaled by the largest of the feasible nodes."""
        return proportional(self._tally.counts(), feasible, reverse=not self.more_is_better)
