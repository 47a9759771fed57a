"""How many more nodes each group may have, and why some may have none.

A group is bounded by its own maximum, by the most of one purchase, by the nodes of the whole
cluster, and by the cluster's cores, memory and GPUs. A group that is all or nothing may have all of
them, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaleup.totals import Totals, read_totals, sums
from bayplan.autoscaler.world import World
from bayplan.fit.batches import Template

AT_MAXIMUM = "max node group size reached"
ALL_NODES = "max nodes in the cluster reached"
RESOURCES = "max cluster {} limit reached"
NO_TEMPLATE = "nobody can say what its next node will be"


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Who may buy how many."""

    most: dict[str, int] = field(default_factory=dict)
    """By group that may have some."""
    refused: dict[str, str] = field(default_factory=dict)
    """The others, and why."""
    whole: int | None = None
    """How many more nodes the whole cluster may have; None is any number."""
    shared: bool = False
    """Whether what one group buys leaves the others less than this says."""

    def templates(self, world: World) -> list[tuple[GroupView, Template]]:
        """The groups that may have some, with what new nodes of theirs are."""
        views = (world.groups[name] for name in sorted(self.most))
        return [(view, view.template) for view in views if view.template is not None]


def bounds(world: World) -> Bounds:
    """The bounds of all groups, in a snapshot that has all nodes which are on their way."""
    totals = read_totals(world.options)
    found = Bounds(whole=_whole(world), shared=bool(totals))
    used = sums(world.snapshot, totals)
    for name, view in sorted(world.groups.items()):
        why = world.closed.get(name) or ("" if view.template else NO_TEMPLATE)
        if not why:
            why, most = _least(_limits(world.options, view, found.whole, totals, used))
            if not why and view.options.zero_or_max_node_scaling and most < view.room:
                why = ALL_NODES
            found.most.update({} if why else {name: most})
        if why:
            found.refused[name] = why
    return found


def _whole(world: World) -> int | None:
    most = world.options.max_nodes_total
    return max(0, most - len(world.snapshot.cluster.slots)) if most > 0 else None


def _limits(
    options: AutoscalerOptions,
    view: GroupView,
    whole: int | None,
    totals: Iterable[Totals],
    used: dict[str, int],
) -> Iterator[tuple[int, str]]:
    yield view.room, AT_MAXIMUM
    if not view.options.zero_or_max_node_scaling:
        yield max(1, options.max_nodes_per_scaleup), AT_MAXIMUM
    if whole is not None:
        yield whole, ALL_NODES
    for total in totals:
        each = total.of(view.template.node) if view.template else 0
        if each:
            yield max(0, total.most - used[total.name]) // each, RESOURCES.format(total.name)


def _least(limits: Iterable[tuple[int, str]]) -> tuple[str, int]:
    """The lowest limit; if it is zero, what says so first."""
    found = list(limits)
    why = next((why for most, why in found if most <= 0), "")
    return why, min(most for most, _ in found)
