"""What pods use of a new node, what it has, and which pods exclude each other.

A node of the template is in the snapshot while this looks at it. What filters say of it holds for
every node like it as long as nothing is on it; what it has left is kept as one vector, on the axes
of the plugins that count. Exclusions ask only who else is on the same node, so that for two groups
there is one answer; a group that excludes itself has at most one pod on a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bayplan.fit.batches.groups import PodEquivalenceGroup
from bayplan.fit.batches.packing import Load, pods_that_fit
from bayplan.fit.plugins.capacity import HostTopology
from bayplan.fit.plugins.registry import CAPACITIES
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import IntArray

_EXCLUSIONS = tuple(one.exclusion for one in CAPACITIES if one.exclusion is not None)
_EXCLUDING_ANY = tuple(one for one in _EXCLUSIONS if one.excludes_any)


class Exclusions:
    """Which groups exclude each other from a node, by number."""

    def __init__(self, groups: Sequence[PodEquivalenceGroup], on: HostTopology) -> None:
        self._groups = groups
        self._on = on
        self._excluding = [
            number
            for number, group in enumerate(groups)
            if any(one.may_exclude(group, on) for one in _EXCLUSIONS)
        ]

    def by(self, number: int) -> frozenset[int]:
        """Return the groups that a pod of this group excludes from its node."""
        excludes_any = any(
            one.may_exclude(self._groups[number], self._on) for one in _EXCLUDING_ANY
        )
        others = range(len(self._groups)) if excludes_any else self._excluding
        return frozenset(other for other in others if self._excludes(number, other))

    def _excludes(self, there: int, coming: int) -> bool:
        one, other = self._groups[there], self._groups[coming]
        return any(exclusion.excludes(one, other, self._on) for exclusion in _EXCLUSIONS)


class Loads:
    """The loads of groups on nodes of one template."""

    def __init__(
        self,
        snapshot: Snapshot,
        node: str,
        groups: Sequence[PodEquivalenceGroup],
        labels: frozenset[str],
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
        exclusions = Exclusions(groups, HostTopology(labels, cluster.namespaces))
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
        kept_off = frozenset().union(*(load.excludes for load in self._loads))
        own = {load.group for load in self._loads if load.once or load.excludes}
        return kept_off | own

    def __getitem__(self, number: int) -> Load:
        return self._loads[number]

    def share(self, number: int) -> IntArray:
        """Return the share of a new node that one pod uses, in parts per million."""
        need = self._loads[number].need
        return np.where(need > 0, need * 1_000_000 // np.maximum(self.fresh, 1), 0)

    def pods_per_node(self, number: int) -> int:
        """Return how many pods of a group fit a new node."""
        return pods_that_fit(self._loads[number], self.fresh, self.volumes)

    def least(self, helped: Sequence[int]) -> int:
        """Return a lower bound of nodes for so many pods of each group."""
        total = np.zeros(len(self.fresh), dtype=np.int64)
        by_count = 0
        for number, count in enumerate(helped):
            most = self.pods_per_node(number) if count else 0
            if most:  # a scheduler without some filters places pods beyond capacity
                total += self._loads[number].need * count
                by_count = max(by_count, -(-count // most))
        return max(by_count, int((-(-total // np.maximum(self.fresh, 1))).max()))

    def _load(self, number: int, group: PodEquivalenceGroup, exclusions: Exclusions) -> Load:
        need = np.zeros(len(self.fresh), dtype=np.int64)
        once: dict[str, int] = {}
        for start, part in self._parts:
            usage = part.usage_of(group)
            for axis, amount in usage.amounts.items():
                need[start + axis] += amount
            once |= {name: start + axis for name, axis in usage.shared.items()}
        asked = np.flatnonzero(need)
        return Load(number, need, asked, need[asked], once, exclusions.by(number))
