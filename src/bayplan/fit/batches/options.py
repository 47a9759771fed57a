"""What each template could do for waiting pods, once the nodes that are there have taken theirs.

Which pods go to the nodes that are there decides what is left for new ones, and no one way is best
for every template. So several ways are tried, and each template gets the one that helps the most
pods with the fewest new nodes: groups as they come, or the smallest first, or those first that take
most of a new node; onto nodes that are least in demand, or have the least or the most room. With
many pods the differences are small and only the first way is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.fit.batches.attempt import FEW_PODS
from bayplan.fit.batches.estimate import Estimate, estimate, look
from bayplan.fit.batches.fill import Placed, Ranking, fill
from bayplan.fit.batches.groups import Group
from bayplan.fit.batches.placing import passing
from bayplan.fit.batches.rooms import rooms
from bayplan.fit.batches.template import Template
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import FloatArray, IntArray
from bayplan.kube.resources import CPU, MEMORY

Rank = Callable[[Snapshot, Group], Ranking]
Watch = Callable[[list[Group]], None]
Way = tuple[tuple[int, ...], Rank]
"""The groups in an order, and how nodes are ranked for each."""


@dataclass(frozen=True, slots=True)
class Option:
    """What one template could do."""

    estimate: Estimate
    placed: tuple[Placed, ...]
    """The pods that nodes which are there would take."""

    @property
    def helped(self) -> int:
        """How many pods would have a place, on any node."""
        return len(self.placed) + self.estimate.pods

    @property
    def merit(self) -> tuple[int, int]:
        """More is better: first pods, then nodes not bought."""
        return self.helped, -self.estimate.nodes


def options(
    snapshot: Snapshot,
    templates: Sequence[Template],
    groups: Sequence[Group],
    most: Sequence[int],
    *,
    watch: Watch | None = None,
) -> list[Option]:
    """For each template its best option, with no more than so many new nodes; nothing is
    changed. `watch` is told who is left once the nodes that are there are filled as usual, while
    they are.
    """
    best: dict[int, Option] = {}
    tried: set[tuple[int, tuple[tuple[str, str], ...]]] = set()
    for way, numbers in _ways(snapshot, templates, groups):
        with snapshot.fork():
            placed, left = fill_all(snapshot, groups, way)
            if watch is not None:
                watch(left)
                watch = None
            where = tuple((pod.key, node) for pod, node in placed)
            for number in numbers:
                if (number, where) in tried:
                    continue  # another way came to the very same
                tried.add((number, where))
                found = Option(estimate(snapshot, templates[number], left, most[number]), placed)
                if number not in best or found.merit > best[number].merit:
                    best[number] = found
        if not placed:
            break  # no group has a place even while no other takes any: no order changes that
    return [best[number] for number in range(len(templates))]


def fill_all(
    snapshot: Snapshot,
    groups: Sequence[Group],
    way: Way | None = None,
) -> tuple[tuple[Placed, ...], list[Group]]:
    """Fill the nodes that are there with all groups, one way; returns who found a place and the
    groups with who did not. They are left assumed, as `fill` does.
    """
    order, rank = way or (tuple(range(len(groups))), least_in_demand(snapshot, groups))
    placed: list[Placed] = []
    left = list(groups)
    for number in order:
        filled = fill(snapshot, groups[number], ranking=rank(snapshot, groups[number]))
        placed.extend(filled.placed)
        left[number] = filled.left
    return tuple(placed), left


def _ways(
    snapshot: Snapshot, templates: Sequence[Template], groups: Sequence[Group]
) -> Iterator[tuple[Way, Sequence[int]]]:
    """Ways to fill, and the templates that each is for."""
    given = tuple(range(len(groups)))
    everyone = range(len(templates))
    demand = least_in_demand(snapshot, groups)
    yield (given, demand), everyone
    if sum(map(len, groups)) > FEW_PODS or not len(snapshot.cluster.slots):
        return
    small_first = tuple(sorted(given, key=lambda number: _size(groups[number])))
    ranks: tuple[Rank, ...] = (demand, rooms_of, most_room)
    yield from (((given, rank), everyone) for rank in ranks[1:])
    yield from (((small_first, rank), everyone) for rank in ranks)
    for number, template in enumerate(templates):
        prospect = look(snapshot, template, groups, 0)
        order = tuple(sorted(given, key=prospect.loads.room))
        yield (order, demand), [number]


def _size(group: Group) -> float:
    requests = group.signature.requests
    return requests.get(CPU, 0) / 1000 + requests.get(MEMORY, 0) / (1 << 32)


def rooms_of(snapshot: Snapshot, group: Group) -> IntArray:
    """Nodes with the least room for a group first."""
    return rooms(snapshot.cluster, group)


def most_room(snapshot: Snapshot, group: Group) -> IntArray:
    """Nodes with the most room for a group first."""
    return -rooms(snapshot.cluster, group)


def least_in_demand(snapshot: Snapshot, groups: Sequence[Group]) -> Rank:
    """Nodes first that the groups together have the least use for, if each were spread evenly
    over all the room it has.
    """
    slots = np.arange(snapshot.cluster.slots.capacity)
    demand: FloatArray = np.zeros(len(slots))
    for group in groups:
        answer = snapshot.evaluation(group.pods[0]) if group.pods else None
        if isinstance(answer, Evaluation):
            room = rooms(snapshot.cluster, group) * passing(answer, slots)
            demand += room * (len(group) / max(int(room.sum()), 1))
    return lambda _snapshot, _group: demand
