"""New nodes in runs: equal until something lands on them, and so kept as one row with a count.

A row has what each node of the run has left, by resource and by driver, and how many pods of each
group are on it. Pods of a group go to the first nodes that they fit, as many as fit, then to the
next; a run of which only some nodes are touched is split. Groups cost rows, and every group adds at
most two, so that neither the number of pods nor the number of nodes matters.

First fit, largest first, puts the large beside the large, and ends with nodes that have cpu left
and no memory, or a limit of a hundred pods and only a few large ones there. A `Blend` fills nodes
one after another instead, each time with pods of the group that takes most of what the node has
left, weighted by how scarce that is for all pending pods. The same filling is repeated on as many
nodes as there are pods for, and what is left of it is where the next one begins; so there are about
as many fillings as groups, whatever the number of pods and nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from bayplan.fit.state.columns import FloatArray, IntArray, SlotArray, grown

MIN_ROWS = 64


@dataclass(frozen=True, slots=True)
class Load:
    """What one pod of a group uses of a node."""

    group: int
    need: IntArray
    """By resource and driver."""
    asked: SlotArray
    """Where in it there is anything."""
    needed: IntArray
    """What there is."""
    once: Mapping[str, int] = field(default_factory=dict)
    """Volumes that take an attach slot only if they are not yet on the node, and of which axis."""
    excludes: frozenset[int] = frozenset()
    """The groups that cannot be on a node with it."""


Filling = list[tuple[Load, int]]
"""How many pods of each group go onto one node."""


@dataclass(slots=True)
class NodeRun:
    """What is on each node of a run."""

    count: int
    pods: dict[int, int] = field(default_factory=dict)
    """By group, how many are on each node."""
    closed_to: frozenset[int] = frozenset()
    volumes: frozenset[str] = frozenset()
    """Volumes that take an attach slot once, and are there."""
    name: str = ""
    """The node, if it is one that has been put into the snapshot."""


class Packing:
    """All new nodes, in the order in which they were added."""

    def __init__(self, fresh: IntArray, volumes: frozenset[str], most: int) -> None:
        self.fresh = fresh
        """What a node has on which nothing is but its daemons."""
        self._volumes = volumes
        self.most = most
        """How many nodes there may be."""
        self.nodes = 0
        """How many there are."""
        self.rows: list[NodeRun] = []
        self._closed: frozenset[int] = frozenset()
        self._buffer: IntArray = np.zeros((MIN_ROWS, len(fresh)), dtype=np.int64)

    @property
    def _left(self) -> IntArray:
        """Return what each node of a row has left."""
        return self._buffer[: len(self.rows)]

    def add(self, count: int, name: str = "") -> int:
        """Add nodes with nothing on them but daemons; returns the number of their row."""
        number = len(self.rows)
        self._insert(number, NodeRun(count, volumes=self._volumes, name=name), self.fresh)
        self.nodes += count
        return number

    def pack(self, load: Load, count: int) -> int:
        """Put pods of a group onto the nodes there are, and then onto new ones; returns how many
        were placed.
        """
        left = count
        if self.rows:
            left -= self._fill(0, load, left, self._fitting_pods(load))
        fitting = pods_that_fit(load, self.fresh, self._volumes) if left else 0
        new = min(-(-left // fitting) if fitting else 0, self.most - self.nodes)
        if left and new > 0:
            left -= self._fill(self.add(new), load, left, np.array([fitting]))
        return count - left

    def take(self, number: int, load: Load, pods: int) -> None:
        """Put so many pods onto every node of a row."""
        row = self.rows[number]
        self._buffer[number] -= load.need * pods
        row.pods[load.group] = row.pods.get(load.group, 0) + pods
        if load.once:
            for volume in load.once.keys() - row.volumes:
                self._buffer[number, load.once[volume]] -= 1
            row.volumes |= load.once.keys()
        if load.excludes:
            row.closed_to |= load.excludes
            self._closed |= load.excludes

    def take_all(self, number: int, filling: Filling) -> None:
        """Put pods of several groups onto every node of a row, which have nothing in common."""
        needs = np.array([load.need for load, _ in filling])
        self._buffer[number] -= np.array([pods for _, pods in filling]) @ needs
        there = self.rows[number].pods
        for load, pods in filling:
            there[load.group] = there.get(load.group, 0) + pods

    def split(self, number: int, nodes: int) -> int:
        """Make the first nodes of a row one of their own, before it, unless they are all of it;
        returns how many rows that adds.
        """
        row = self.rows[number]
        if nodes == row.count:
            return 0
        row.count -= nodes
        first = NodeRun(nodes, dict(row.pods), row.closed_to, row.volumes)
        self._insert(number, first, self._buffer[number].copy())
        return 1

    def left_on(self, number: int) -> IntArray:
        """Return what each node of a row has left."""
        left: IntArray = self._buffer[number]
        return left

    def unroll(self) -> None:
        """Make every node a row of its own."""
        self._buffer = np.repeat(self._left, [row.count for row in self.rows], axis=0)
        self.rows = [
            NodeRun(1, dict(row.pods), row.closed_to, row.volumes, row.name)
            for row in self.rows
            for _ in range(row.count)
        ]

    def _fill(self, start: int, load: Load, count: int, fitting: IntArray) -> int:
        """Fill rows from one on, given how many pods fit on each of their nodes; return how many
        were placed.
        """
        left, added = count, 0
        for offset in np.flatnonzero(fitting).tolist():
            number, each = start + offset + added, int(fitting[offset])
            nodes = self.rows[number].count
            full = min(left // each, nodes)
            if full:
                split = self._put(number, load, full, each)
                added, number, left = added + split, number + split, left - full * each
            if left and full < nodes:
                self._put(number, load, 1, left)
                left = 0
            if not left:
                break
        return count - left

    def _put(self, number: int, load: Load, nodes: int, pods: int) -> int:
        """Put so many pods onto each of the first nodes of a row; returns 1 if these had to be
        made a row of their own, before it.
        """
        splits = self.split(number, nodes)
        self.take(number, load, pods)
        return splits

    def _insert(self, number: int, row: NodeRun, left: IntArray) -> None:
        last = len(self.rows)
        if last == len(self._buffer):
            self._buffer = grown(self._buffer, 2 * last + MIN_ROWS)
        self._buffer[number + 1 : last + 1] = self._buffer[number:last]
        self._buffer[number] = left
        self.rows.insert(number, row)

    def _fitting_pods(self, load: Load) -> IntArray:
        """Return how many more pods fit each node of every row."""
        fitting: IntArray = (self._left[:, load.asked] // load.needed).min(axis=1)
        np.clip(fitting, 0, 1 if load.group in load.excludes else None, out=fitting)
        if load.once or load.group in self._closed:
            for number in np.flatnonzero(fitting).tolist():
                row = self.rows[number]
                is_closed = load.group in row.closed_to
                left = self._buffer[number]
                fitting[number] = 0 if is_closed else pods_that_fit(load, left, row.volumes)
        return fitting


def pods_that_fit(load: Load, left: IntArray, there: frozenset[str]) -> int:
    """Return how many pods fit a node that has so much left, and these volumes."""
    new = load.once.keys() - there
    if new:
        left = left.copy()
        for volume in new:
            left[load.once[volume]] -= 1
        if any(left[load.once[volume]] < 0 for volume in new):
            return 0
    fitting = int((left[load.asked] // load.needed).min())
    return max(min(fitting, 1) if load.group in load.excludes else fitting, 0)


# -- pods that suit each other ---------------------------------------------------------------------


BATCH_DIVISOR = 3
"""Of the pods of a group that still fit a node, one in so many is put there at once."""


def blend_onto(packing: Packing, blend: Blend) -> None:
    """Put pods onto the nodes in use, and then onto new ones."""
    number = 0
    while number < len(packing.rows):
        filling, nodes = blend.filling(packing.left_on(number), packing.rows[number].count)
        if nodes:
            packing.split(number, nodes)
            packing.take_all(number, filling)
        number += 1
    while packing.nodes < packing.most:
        filling, nodes = blend.filling(packing.fresh, packing.most - packing.nodes)
        if not nodes:
            break
        packing.take_all(packing.add(nodes), filling)


class Blend:
    """Pods to be put onto nodes, of groups for which only their size matters: they exclude no pods
    from a node, none exclude them, and they share no volumes.
    """

    def __init__(self, loads: Sequence[Load], counts: Sequence[int], fresh: IntArray) -> None:
        self._loads = loads
        self.left: IntArray = np.array(counts, dtype=np.int64)
        """By load, how many pods have no place yet."""
        needs = np.array([load.need for load in loads]).reshape(len(loads), len(fresh))
        self._asked = np.flatnonzero(needs.any(axis=0))
        self._requirements: IntArray = needs[:, self._asked]
        self._rows: list[list[int]] = self._requirements.tolist()
        self._has: FloatArray = np.maximum(fresh[self._asked], 1).astype(np.float64)
        self._parts: FloatArray = self._requirements / self._has
        self._last: IntArray = np.zeros_like(self.left)

    def filling(self, left: IntArray, most: int) -> tuple[Filling, int]:
        """Return what goes onto a node that has so much left, and onto how many such nodes, of so
        many; these pods are then placed.
        """
        counts = self.suggest(left)
        chosen = np.flatnonzero(counts)
        if not len(chosen):
            return [], 0
        nodes = min(int((self.left[chosen] // counts[chosen]).min()), most)
        self.left -= counts * nodes
        loads = [self._loads[at] for at in chosen.tolist()]
        return list(zip(loads, counts[chosen].tolist(), strict=True)), nodes

    def suggest(self, left: IntArray) -> IntArray:
        """Return how many pods of each group go onto a node that has so much left: those of the
        last such filling, as far as there are any, and more as long as they fit.
        """
        self._last = self._counts(np.maximum(left[self._asked], 0))
        return self._last

    def _counts(self, left: IntArray) -> IntArray:
        counts: IntArray = np.minimum(self._last, self.left)
        has: IntArray = left - counts @ self._requirements
        if has.min(initial=0) < 0:
            counts, has = np.zeros_like(counts), left
        worth = self._parts * (self.left @ self._parts / self._has)
        while True:
            waits = np.flatnonzero(self.left > counts)
            fits = waits[(self._requirements[waits] <= has).all(axis=1)]
            if not len(fits):
                return counts
            has = self._put(counts, has, fits, worth[fits])

    def _put(self, counts: IntArray, has: IntArray, fits: SlotArray, worth: FloatArray) -> IntArray:
        """Put pods of these groups onto a node, which takes one of each, until it no longer takes
        the one that would be next; returns what it has left.
        """
        left: list[int] = has.tolist()
        while True:
            best = int(fits[(worth @ left).argmax()])
            need = self._rows[best]
            fitting = min([some // each for some, each in zip(left, need, strict=True) if each])
            count = min(
                int(self.left[best] - counts[best]), max(fitting // BATCH_DIVISOR, min(fitting, 1))
            )
            if not count:
                return np.array(left, dtype=np.int64)
            left = [some - each * count for some, each in zip(left, need, strict=True)]
            counts[best] += count
