"""What each template could do for pending pods, once existing nodes are filled.

Which pods go to existing nodes decides what is left for new ones, and no one order is best for
every template. So several orders are tried, and each template gets the one that helps the most pods
with the fewest new nodes: groups as they come, or the smallest first, or those first that take most
of a new node; onto nodes that are least in demand, or have the least or the most free capacity.
With many pods the differences are small and only the first order is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bayplan.fit.batches.attempt import FEW_PODS
from bayplan.fit.batches.estimate import Estimate, estimate, prepare_estimate
from bayplan.fit.batches.fill import PodPlacement, Ranking, fill, free_capacity, passing
from bayplan.fit.batches.groups import PodEquivalenceGroup
from bayplan.fit.batches.template import NodeTemplate
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.snapshot import Snapshot
from bayplan.fit.state.columns import FloatArray, IntArray
from bayplan.kube.resources import CPU, MEMORY

Rank = Callable[[Snapshot, PodEquivalenceGroup], Ranking]
Watch = Callable[[list[PodEquivalenceGroup]], None]
FillOrder = tuple[tuple[int, ...], Rank]
"""The groups in an order, and how nodes are ranked for each."""


@dataclass(frozen=True, slots=True)
class Option:
    """What new nodes of one template could do."""

    estimate: Estimate
    placed: tuple[PodPlacement, ...]
    """The pods that existing nodes would take."""

    @property
    def helped(self) -> int:
        """How many pods would be placed, on any node."""
        return len(self.placed) + self.estimate.pods

    @property
    def merit(self) -> tuple[int, int]:
        """More is better: first more pods, then fewer new nodes."""
        return self.helped, -self.estimate.nodes


def options(
    snapshot: Snapshot,
    templates: Sequence[NodeTemplate],
    groups: Sequence[PodEquivalenceGroup],
    most: Sequence[int],
    *,
    watch: Watch | None = None,
) -> list[Option]:
    """Return the best option of each template, with at most so many new nodes; nothing is
    changed. `watch` is called with the groups left once existing nodes are filled as usual, while
    they are.
    """
    best: dict[int, Option] = {}
    tried: set[tuple[int, tuple[tuple[str, str], ...]]] = set()
    for way, numbers in _fill_orders(snapshot, templates, groups):
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
    groups: Sequence[PodEquivalenceGroup],
    way: FillOrder | None = None,
) -> tuple[tuple[PodPlacement, ...], list[PodEquivalenceGroup]]:
    """Fill existing nodes with all groups in one order; return the placements and the groups
    with the pods that are left. They are left assumed, as `fill` does.
    """
    order, rank = way or (tuple(range(len(groups))), least_in_demand(snapshot, groups))
    placed: list[PodPlacement] = []
    left = list(groups)
    for number in order:
        filled = fill(snapshot, groups[number], ranking=rank(snapshot, groups[number]))
        placed.extend(filled.placed)
        left[number] = filled.left
    return tuple(placed), left


def _fill_orders(
    snapshot: Snapshot, templates: Sequence[NodeTemplate], groups: Sequence[PodEquivalenceGroup]
) -> Iterator[tuple[FillOrder, Sequence[int]]]:
    """Yield orders to fill nodes in, each with the templates that it is for."""
    given = tuple(range(len(groups)))
    all_templates = range(len(templates))
    demand = least_in_demand(snapshot, groups)
    yield (given, demand), all_templates
    if sum(map(len, groups)) > FEW_PODS or not len(snapshot.cluster.slots):
        return
    small_first = tuple(sorted(given, key=lambda number: _size(groups[number])))
    ranks: tuple[Rank, ...] = (demand, least_capacity_first, most_capacity_first)
    yield from (((given, rank), all_templates) for rank in ranks[1:])
    yield from (((small_first, rank), all_templates) for rank in ranks)
    for number, template in enumerate(templates):
        prospect = prepare_estimate(snapshot, template, groups, 0)
        order = tuple(sorted(given, key=prospect.loads.pods_per_node))
        yield (order, demand), [number]


def _size(group: PodEquivalenceGroup) -> float:
    requests = group.signature.requests
    return requests.get(CPU, 0) / 1000 + requests.get(MEMORY, 0) / (1 << 32)


def least_capacity_first(snapshot: Snapshot, group: PodEquivalenceGroup) -> IntArray:
    """Rank nodes with the least free capacity for a group first."""
    return free_capacity(snapshot.cluster, group)


def most_capacity_first(snapshot: Snapshot, group: PodEquivalenceGroup) -> IntArray:
    """Rank nodes with the most free capacity for a group first."""
    return -free_capacity(snapshot.cluster, group)


def least_in_demand(snapshot: Snapshot, groups: Sequence[PodEquivalenceGroup]) -> Rank:
    """Rank nodes first that are least in demand, if each group were spread evenly over all the
    capacity that is free for it.
    """
    slots = np.arange(snapshot.cluster.slots.capacity)
    demand: FloatArray = np.zeros(len(slots))
    for group in groups:
        answer = snapshot.evaluation(group.pods[0]) if group.pods else None
        if isinstance(answer, Evaluation):
            free = free_capacity(snapshot.cluster, group) * passing(answer, slots)
            demand += free * (len(group) / max(int(free.sum()), 1))
    return lambda _snapshot, _group: demand
