"""What pods take of a new node, and what a new node has: read off one that was put there.

A node of the template is in the snapshot while this looks at it. What filters say of it holds for
every node like it as long as nothing is on it; what it has left is kept as one vector, on the axes
of the plugins that count.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bayplan.fit.batches.exclusions import Exclusions
from bayplan.fit.batches.groups import Group
from bayplan.fit.batches.packing import Load, room_for
from bayplan.fit.plugins.capacity import OneNode
from bayplan.fit.plugins.registry import CAPACITIES
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import IntArray


class Loads:
    """The loads of groups on nodes of one template."""

    def __init__(
        self, snapshot: Snapshot, node: str, groups: Sequence[Group], labels: frozenset[str]
    ) -> None:
        cluster = snapshot.cluster
        measured = [one.measure(cluster, node, groups) for one in CAPACITIES if one.measure]
        starts = np.cumsum([0, *(len(one.free) for one in measured)]).tolist()
        self._parts = list(zip(starts, measured, strict=False))
        self.fresh: IntArray = np.array(
            [free for one in measured for free in one.free], dtype=np.int64
        )
        """What a node has on which nothing is but its daemons."""
        self.volumes = frozenset[str]().union(*(one.present for one in measured))
        """What pods share and daemons have there."""
        exclusions = Exclusions(groups, OneNode(labels, cluster.namespaces))
        self._loads = [self._load(n, one, exclusions) for n, one in enumerate(groups)]
        self.fitting = frozenset(
            number
            for number, group in enumerate(groups)
            if group.pods and snapshot.refusal(group.pods[0], node) is None
        )
        """The groups of which a pod fits such a node, as long as nothing is on any of them."""

    @cached_property
    def awkward(self) -> frozenset[int]:
        """The groups that matter by more than their size, to themselves or to others."""
        kept_off = frozenset().union(*(load.keeps_off for load in self._loads))
        own = {load.group for load in self._loads if load.once or load.keeps_off}
        return kept_off | own

    def __getitem__(self, number: int) -> Load:
        return self._loads[number]

    def share(self, number: int) -> IntArray:
        """How much of what a new node has one pod takes, in parts of a million."""
        need = self._loads[number].need
        return np.where(need > 0, need * 1_000_000 // np.maximum(self.fresh, 1), 0)

    def room(self, number: int) -> int:
        """How many pods of a group a new node has room for."""
        return room_for(self._loads[number], self.fresh, self.volumes)

    def least(self, helped: Sequence[int]) -> int:
        """No fewer nodes can take so many pods of each group."""
        total = np.zeros(len(self.fresh), dtype=np.int64)
        by_room = 0
        for number, count in enumerate(helped):
            room = self.room(number) if count else 0
            if room:  # a scheduler without some filters helps pods that there is no room for
                total += self._loads[number].need * count
                by_room = max(by_room, -(-count // room))
        return max(by_room, int((-(-total // np.maximum(self.fresh, 1))).max()))

    def _load(self, number: int, group: Group, exclusions: Exclusions) -> Load:
        need = np.zeros(len(self.fresh), dtype=np.int64)
        once: dict[str, int] = {}
        for start, part in self._parts:
            take = part.take(group)
            for axis, amount in take.amounts.items():
                need[start + axis] += amount
            once |= {name: start + axis for name, axis in take.shared.items()}
        asked = np.flatnonzero(need)
        return Load(number, need, asked, need[asked], once, exclusions.by(number))
