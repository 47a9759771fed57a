"""What pods take of a new node, and what a new node has: read off one that was put there.

A node of the template is in the snapshot while this looks at it. What filters say of it holds for
every node like it as long as nothing is on it; what it has left is kept as one vector, resources
first, then places for volumes by driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bayplan.fit.batches.exclusions import Exclusions, excludes_itself
from bayplan.fit.batches.groups import Group
from bayplan.fit.batches.packing import Load, room_for
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import IntArray
from bayplan.fit.volumes.identity import VolumeId, VolumeIdentity


class Loads:
    """The loads of groups on nodes of one template."""

    def __init__(
        self, snapshot: Snapshot, node: str, groups: Sequence[Group], labels: frozenset[str]
    ) -> None:
        cluster = snapshot.cluster
        self._has_csinode = node in cluster.csinodes
        self._groups = groups
        slot = cluster.slots.by_name[node]
        for group in groups:
            cluster.resources.need(group.signature.requests)  # so that all have a column
        self._columns = cluster.resources.columns
        drivers = {self._on_node(one).driver for group in groups for one in _volumes(group)}
        self._places = {name: len(self._columns) + at for at, name in enumerate(sorted(drivers))}
        self.fresh: IntArray = np.array(
            [*cluster.resources.free[slot].tolist(), *_free_places(snapshot, slot, self._places)],
            dtype=np.int64,
        )
        """What a node has on which nothing is but its daemons."""
        shared = {self._on_node(one) for group in groups for one in group.shared_volumes}
        self.volumes = frozenset(
            _named(one) for one in shared if slot in cluster.attached_volumes.users(one)
        )
        """The shared volumes that daemons have there."""
        exclusions = Exclusions(groups, labels, cluster.namespaces)
        self._loads = [self._load(number, exclusions) for number in range(len(groups))]
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

    def _load(self, number: int, exclusions: Exclusions) -> Load:
        group = self._groups[number]
        need = np.zeros(len(self.fresh), dtype=np.int64)
        need[0] = 1
        for name, amount in group.signature.requests.items():
            need[self._columns[name]] = amount
        for one, count in group.own_volumes:
            need[self._places[self._on_node(one).driver]] += count
        shared = [self._on_node(one) for one in group.shared_volumes]
        once = {_named(one): self._places[one.driver] for one in shared}
        keeps_off = exclusions.by(number)
        if excludes_itself(group):
            keeps_off |= {number}
        asked = np.flatnonzero(need)
        return Load(number, need, asked, need[asked], once, keeps_off)

    def _on_node(self, one: VolumeIdentity) -> VolumeId:
        return one.on_node(has_csinode=self._has_csinode)


def _free_places(
    snapshot: Snapshot, slot: int, drivers: Sequence[str] | dict[str, int]
) -> list[int]:
    columns = [snapshot.cluster.attached_volumes.columns(driver) for driver in drivers]
    return [int(one.limit[slot] - one.used[slot]) for one in columns]


def _volumes(group: Group) -> list[VolumeIdentity]:
    return [*(one for one, _ in group.own_volumes), *group.shared_volumes]


def _named(one: VolumeId) -> str:
    return f"{one.driver}/{one.handle}"
