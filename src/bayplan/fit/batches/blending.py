"""Packing pods together that suit each other: what one leaves of a node, another takes.

First fit, largest first, puts the large beside the large, and ends with nodes that have cpu left
and no memory, or places for a hundred pods and only a few large ones there. Here nodes are filled
one after another, each time with pods of the group that takes most of what the node has left, as
scarce as that is for all who wait. The same filling is repeated on as many nodes as there are pods
for, and what is left of it is where the next one begins; so there are about as many fillings as
groups, whatever the number of pods and nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bayplan.fit.batches.packing import Filling, Load, Packing
from bayplan.fit.state.columns import FloatArray, IntArray, SlotArray

AT_ONCE = 3
"""Of the pods of a group that a node still has room for, one in so many is put there at once."""


def blend_onto(packing: Packing, blend: Blend) -> None:
    """Put pods onto the nodes there are, and then onto new ones."""
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
    """Pods to be put onto nodes, of groups for which only their size matters: they keep nobody off
    a node, nobody does so to them, and they share no volumes.
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
        """What goes onto a node that has so much left, and onto how many such nodes, of so many;
        these pods then have a place.
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
        """How many pods of each group should go onto a node that has so much left: those of the
        last such filling, as far as there are any, and more as long as it has room.
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
            room = min([some // each for some, each in zip(left, need, strict=True) if each])
            count = min(int(self.left[best] - counts[best]), max(room // AT_ONCE, min(room, 1)))
            if not count:
                return np.array(left, dtype=np.int64)
            left = [some - each * count for some, each in zip(left, need, strict=True)]
            counts[best] += count
