"""Standing answers, by question; those asked least recently are dropped first.

A question about a volume that is in use already, or about a disk, is hardly asked by more than one
pod: of these only a few are kept, so that thousands of them do not take the room of all the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.requirements.pods import PodRequirements
from bayplan.fit.state.cluster import Cluster

BYTES_A_SLOT = 32
"""What one standing answer takes for each node, about."""
FEW = 64
"""Answers to questions of single pods that are kept."""


class Standing:
    """What has been worked out and may be asked again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._common: OrderedDict[object, Evaluation] = OrderedDict()
        self._single: OrderedDict[object, Evaluation] = OrderedDict()

    def of(
        self, question: object, needs: PodRequirements, work_out: Callable[[], Evaluation]
    ) -> Evaluation:
        """The standing answer to a question of pods with these needs."""
        kept = self._single if needs.is_of_one else self._common
        known = kept.get(question)
        if known is not None:
            kept.move_to_end(question)
            return known
        self._make_room()
        known = kept[question] = work_out()
        return known

    def _make_room(self) -> None:
        if self._cluster.census.is_crowded:
            self._common.clear()
            self._single.clear()
            self._cluster.census.forget_counters()
        each = self._cluster.slots.capacity * BYTES_A_SLOT
        while len(self._common) * each > self._cluster.limits.evaluation_bytes:
            self._common.popitem(last=False)
        while len(self._single) >= FEW:
            self._single.popitem(last=False)
