"""Raw counts on the node object alone, shared by all shapes that count the same."""

from __future__ import annotations

from typing import ClassVar

from bayplan.fit.scores.base import RelativeScore, proportional
from bayplan.fit.state.columns import BoolArray, IntArray, NodeTally


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
