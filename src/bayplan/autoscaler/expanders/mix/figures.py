"""What is for sale and who wants it, as figures: the question with all that hampers it left out.

For each group of pods and each template there is the part of a new node that one pod takes, by
resource and by driver, and how many pods of that group alone one node has room for. Left out is
all that can only make things dearer: pods that keep each other away, volumes in common, rules that
compare nodes, and that no pod can be on two nodes in parts. So whatever helps the same pods costs
at least as much as the best answer to these figures. Pods that hinge on others, or on other filters
than the usual ones, take nothing here at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bayplan.fit.batches.attempt import Prospect
from bayplan.fit.batches.comparing import compares_nodes
from bayplan.fit.batches.rooms import PLENTY
from bayplan.fit.state.columns import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """S groups of pods, T templates, and R things of which a node has so much."""

    parts: FloatArray
    """[S, T, R] the part of a node that one pod takes."""
    rooms: IntArray
    """[S, T] how many pods one node has room for; 0 where it takes none."""
    costs: FloatArray
    """[T] what a node costs."""
    most: IntArray
    """[T] how many nodes there may be."""
    wanted: IntArray
    """[S] how many pods there are."""
    total: int
    """How many nodes there may be of all templates together."""

    @property
    def takeable(self) -> BoolArray:
        """[S] which groups any template takes."""
        return np.asarray((self.rooms > 0).any(axis=1))

    def wanting(self, wanted: Sequence[int] | IntArray) -> Figures:
        """The same for other numbers of pods."""
        return replace(self, wanted=np.array(wanted, dtype=np.int64))


def figures_of(prospects: Sequence[Prospect], costs: Sequence[float], total: int) -> Figures:
    """The figures of these templates, all asked about the same pods."""
    pods = [len(group) for group in prospects[0].groups]
    wide = max(len(one.loads.fresh) for one in prospects)
    parts = np.zeros((len(pods), len(prospects), wide))
    rooms = np.zeros((len(pods), len(prospects)), dtype=np.int64)
    for at, prospect in enumerate(prospects):
        fresh = np.maximum(prospect.loads.fresh, 1)
        for number, group in enumerate(prospect.groups):
            if group.hinges:
                rooms[number, at] = PLENTY
            elif takes(prospect, number):
                rooms[number, at] = prospect.loads.room(number)
                parts[number, at, : len(fresh)] = prospect.loads[number].need / fresh
    most = np.array([one.most for one in prospects], dtype=np.int64)
    return Figures(
        parts, rooms, np.array(costs), most, np.array(pods, dtype=np.int64), min(total, PLENTY)
    )


def takes(prospect: Prospect, number: int) -> bool:
    """Whether new nodes of a template could take pods of a group, once others may have come."""
    group = prospect.groups[number]
    if not group.pods or group.refusal:
        return False
    return number in prospect.loads.fitting or compares_nodes(group, prospect.template.own_labels)
