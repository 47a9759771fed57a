"""New nodes in runs: equal until something lands on them, and so kept as one row with a count.

A row says what each node of the run has left, by resource and by driver, and how many pods of each
group are on it. Pods of a group go to the first nodes that have room, as many as fit, then to the
next; a run of which only some nodes are touched is split. Groups cost rows, and every group adds at
most two, so that neither the number of pods nor the number of nodes matters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bayplan.fit.state.columns import IntArray, SlotArray, grown

MIN_ROWS = 64


@dataclass(frozen=True, slots=True)
class Load:
    """What one pod of a group takes of a node, and what it finds on one with nothing on it."""

    group: int
    need: IntArray
    """By resource and driver."""
    asked: SlotArray
    """Where in it there is anything."""
    needed: IntArray
    """What there is."""
    once: Mapping[str, int] = field(default_factory=dict)
    """Volumes that take a place only if they are not yet on the node, and what place that is."""
    keeps_off: frozenset[int] = frozenset()
    """The groups that cannot be on a node with it."""


Filling = list[tuple[Load, int]]
"""How many pods of each group go onto one node."""


@dataclass(slots=True)
class Row:
    """What is on each node of a run."""

    count: int
    pods: dict[int, int] = field(default_factory=dict)
    """By group, how many are on each node."""
    closed_to: frozenset[int] = frozenset()
    volumes: frozenset[str] = frozenset()
    """Volumes that take a place once, and are there."""
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
        self.rows: list[Row] = []
        self._closed: frozenset[int] = frozenset()
        self._buffer: IntArray = np.zeros((MIN_ROWS, len(fresh)), dtype=np.int64)

    @property
    def _left(self) -> IntArray:
        """What each node of a row has left."""
        return self._buffer[: len(self.rows)]

    def add(self, count: int, name: str = "") -> int:
        """Add nodes with nothing on them but daemons; returns the number of their row."""
        number = len(self.rows)
        self._insert(number, Row(count, volumes=self._volumes, name=name), self.fresh)
        self.nodes += count
        return number

    def pack(self, load: Load, count: int) -> int:
        """Put pods of a group onto the nodes there are, and then onto new ones; returns how many
        found a place.
        """
        left = count
        if self.rows:
            left -= self._fill(0, load, left, self._rooms(load))
        room = room_for(load, self.fresh, self._volumes) if left else 0
        new = min(-(-left // room) if room else 0, self.most - self.nodes)
        if left and new > 0:
            left -= self._fill(self.add(new), load, left, np.array([room]))
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
        if load.keeps_off:
            row.closed_to |= load.keeps_off
            self._closed |= load.keeps_off

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
        first = Row(nodes, dict(row.pods), row.closed_to, row.volumes)
        self._insert(number, first, self._buffer[number].copy())
        return 1

    def left_on(self, number: int) -> IntArray:
        """What each node of a row has left."""
        left: IntArray = self._buffer[number]
        return left

    def unroll(self) -> None:
        """Make every node a row of its own."""
        self._buffer = np.repeat(self._left, [row.count for row in self.rows], axis=0)
        self.rows = [
            Row(1, dict(row.pods), row.closed_to, row.volumes, row.name)
            for row in self.rows
            for _ in range(row.count)
        ]

    def _fill(self, start: int, load: Load, count: int, rooms: IntArray) -> int:
        """Fill rows from one on, given their room; returns how many pods found a place."""
        left, added = count, 0
        for offset in np.flatnonzero(rooms).tolist():
            number, room = start + offset + added, int(rooms[offset])
            nodes = self.rows[number].count
            full = min(left // room, nodes)
            if full:
                split = self._put(number, load, full, room)
                added, number, left = added + split, number + split, left - full * room
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

    def _insert(self, number: int, row: Row, left: IntArray) -> None:
        last = len(self.rows)
        if last == len(self._buffer):
            self._buffer = grown(self._buffer, 2 * last + MIN_ROWS)
        self._buffer[number + 1 : last + 1] = self._buffer[number:last]
        self._buffer[number] = left
        self.rows.insert(number, row)

    def _rooms(self, load: Load) -> IntArray:
        """How many more pods each node of every row has room for."""
        rooms: IntArray = (self._left[:, load.asked] // load.needed).min(axis=1)
        np.clip(rooms, 0, 1 if load.group in load.keeps_off else None, out=rooms)
        if load.once or load.group in self._closed:
            for number in np.flatnonzero(rooms).tolist():
                row = self.rows[number]
                is_closed = load.group in row.closed_to
                left = self._buffer[number]
                rooms[number] = 0 if is_closed else room_for(load, left, row.volumes)
        return rooms


def room_for(load: Load, left: IntArray, there: frozenset[str]) -> int:
    """How many pods a node has room for that has so much left, and these volumes."""
    new = load.once.keys() - there
    if new:
        left = left.copy()
        for volume in new:
            left[load.once[volume]] -= 1
        if any(left[load.once[volume]] < 0 for volume in new):
            return 0
    room = int((left[load.asked] // load.needed).min())
    return max(min(room, 1) if load.group in load.keeps_off else room, 0)
