"""How many nodes are given back at once: so many in all, and so many that must be drained.

Nodes of a group that is only ever empty or full go together or not at all. One such group may go
although it is more than is left, since otherwise a large one would never have its turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.options import ScaleDownOptions
from bayplan.autoscaler.scaledown.progress import Deletions
from bayplan.autoscaler.scaledown.removal import Removable


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes of one group that go now."""

    group: str
    nodes: tuple[Removable, ...]
    together: bool = False
    """Whether all of them must go, or none."""


class _Budget:
    """What is left of both."""

    def __init__(self, options: ScaleDownOptions, deletions: Deletions) -> None:
        self.parallel = options.max_scale_down_parallelism - len(deletions)
        self.drains = options.max_drain_parallelism - len(deletions.drained)
        self.overdrawn = False

    def admits(self, nodes: int, drains: int) -> bool:
        """Whether so many may go together."""
        if nodes <= self.parallel and drains <= self.drains:
            return True
        return not self.overdrawn and self.parallel > 0 and (not drains or self.drains > 0)

    def take(self, nodes: int, drains: int) -> None:
        """So many go."""
        self.parallel -= nodes
        self.drains -= drains


def crop(
    going: Sequence[Removable],
    group_of: Mapping[str, str],
    groups: Mapping[str, GroupView],
    options: ScaleDownOptions,
    deletions: Deletions,
) -> list[Batch]:
    """Of nodes that may go, those that go now; empty ones before those that must be drained."""
    budget = _Budget(options, deletions)
    by_group = _by_group(going, group_of)
    atomic = {group for group in by_group if is_atomic(groups.get(group))}
    batches: list[Batch] = []
    for group in sorted(atomic, key=lambda one: not any(n.is_empty for n in by_group[one])):
        nodes = tuple(by_group[group])
        drains = sum(not one.is_empty for one in nodes)
        if budget.admits(len(nodes), drains):
            budget.take(len(nodes), drains)
            budget.overdrawn = True
            batches.append(Batch(group, nodes, together=True))
    single = [one for one in going if group_of.get(one.node) not in atomic]
    chosen = _by_group(_single(single, budget), group_of)
    return [*batches, *(Batch(group, tuple(nodes)) for group, nodes in chosen.items())]


def is_atomic(view: GroupView | None) -> bool:
    """Whether a group is only ever empty or full."""
    return view is not None and view.options.zero_or_max_node_scaling


def _single(going: Iterable[Removable], budget: _Budget) -> list[Removable]:
    chosen: list[Removable] = []
    for one in sorted(going, key=lambda one: not one.is_empty):
        drains = int(not one.is_empty)
        if budget.parallel >= 1 and drains <= budget.drains:
            budget.take(1, drains)
            chosen.append(one)
    return chosen


def _by_group(
    going: Iterable[Removable], group_of: Mapping[str, str]
) -> dict[str, list[Removable]]:
    found: dict[str, list[Removable]] = {}
    for one in going:
        group = group_of.get(one.node)
        if group is not None:
            found.setdefault(group, []).append(one)
    return found
