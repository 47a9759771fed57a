"""Of nodes that are not needed, those that may go now: unneeded for long enough, above the minimum
of their group and of the cluster, and whole where a group goes as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.scaledown.eligibility import is_disabled
from bayplan.autoscaler.scaledown.parallelism import is_atomic
from bayplan.autoscaler.scaledown.progress import Deletions
from bayplan.autoscaler.scaledown.readiness import is_ready
from bayplan.autoscaler.scaledown.reasons import Unremovable, UnremovableReason
from bayplan.autoscaler.scaledown.removal import Removable
from bayplan.autoscaler.scaleup.totals import read_totals, sums
from bayplan.autoscaler.world import World
from bayplan.kube.nodes import Node

Released = tuple[list[Removable], list[Unremovable]]


def release(
    removable: Iterable[Removable],
    unneeded: Mapping[str, datetime],
    world: World,
    deletions: Deletions,
    gpu_label: str = "",
) -> Released:
    """Those that may go now, and why the others may not yet."""
    gate = _Gate(world, unneeded, deletions, gpu_label)
    go: list[Removable] = []
    stay: list[Unremovable] = []
    for one in sorted(removable, key=lambda one: (not one.is_empty, unneeded[one.node], one.node)):
        reason = gate.closed_to(one)
        if reason is None:
            go.append(one)
        else:
            stay.append(reason)
    whole, parts = _only_whole(go, world)
    ended, running = _without_running(whole)
    return sorted(ended, key=lambda one: (not one.is_empty, one.risky)), [*stay, *parts, *running]


class _Gate:
    """Lets nodes go as long as groups and cluster keep their least."""

    def __init__(
        self,
        world: World,
        unneeded: Mapping[str, datetime],
        deletions: Deletions,
        gpu_label: str,
    ) -> None:
        self._world = world
        self._unneeded = unneeded
        self._gpu_label = gpu_label
        leaving = deletions.by_group()
        self._sizes = {name: view.target - leaving[name] for name, view in world.groups.items()}
        self._totals = [total for total in read_totals(world.options) if total.least]
        self._sums = sums(world.snapshot, self._totals)

    def closed_to(self, one: Removable) -> Unremovable | None:
        """Why a node may not go yet; None if it goes."""
        node = self._world.snapshot.cluster.node_named(one.node)
        view = self._world.groups.get(self._world.group_of.get(one.node, ""))
        if node is None or view is None:
            return Unremovable(one.node, UnremovableReason.NOT_AUTOSCALED)
        if is_disabled(node):
            return Unremovable(one.node, UnremovableReason.SCALE_DOWN_DISABLED_ANNOTATION)
        return self._too_early(node, view) or self._too_few(node, view)

    def _too_early(self, node: Node, view: GroupView) -> Unremovable | None:
        ready = is_ready(node, self._world.options, self._gpu_label)
        options = view.options
        needed = options.scale_down_unneeded_time if ready else options.scale_down_unready_time
        waited = (self._world.now - self._unneeded[node.name]).total_seconds()
        if not needed or waited > needed:
            return None
        reason = (
            UnremovableReason.NOT_UNNEEDED_LONG_ENOUGH
            if ready
            else UnremovableReason.NOT_UNREADY_LONG_ENOUGH
        )
        return Unremovable(node.name, reason, detail=f"for {waited:.0f}s of {needed:.0f}s")

    def _too_few(self, node: Node, view: GroupView) -> Unremovable | None:
        if self._sizes[view.id] <= view.group.min_size:
            return at_minimum(node.name, view)
        for total in self._totals:
            if self._sums[total.name] - total.of(node) < total.least:
                reason = UnremovableReason.MINIMAL_RESOURCE_LIMIT_EXCEEDED
                return Unremovable(node.name, reason, detail=f"{total.name} of the cluster")
        self._sizes[view.id] -= 1
        for total in self._totals:
            self._sums[total.name] -= total.of(node)
        return None


def at_minimum(node: str, view: GroupView) -> Unremovable:
    """A node whose group has no more than it must have."""
    detail = f"group {view.id} has {view.target}, and must have {view.group.min_size}"
    return Unremovable(node, UnremovableReason.NODE_GROUP_MIN_SIZE_REACHED, detail=detail)


def _only_whole(go: list[Removable], world: World) -> Released:
    """Without nodes of groups that go as a whole, and cannot."""
    by_group: dict[str, int] = {}
    for one in go:
        group = world.group_of[one.node]
        by_group[group] = by_group.get(group, 0) + 1
    partly = {
        group
        for group, count in by_group.items()
        if is_atomic(world.groups[group])
        and count not in {world.groups[group].target, len(world.groups[group].nodes)}
    }
    failed = UnremovableReason.ATOMIC_SCALE_DOWN_FAILED
    kept = [one for one in go if world.group_of[one.node] in partly]
    return (
        [one for one in go if world.group_of[one.node] not in partly],
        [Unremovable(one.node, failed, detail="its group goes as a whole") for one in kept],
    )


def _without_running(go: list[Removable]) -> Released:
    """Without nodes that wait for a pod to end by itself."""
    reason = UnremovableReason.BLOCKED_BY_ON_COMPLETION_POD
    running = [one for one in go if one.on_completion]
    return (
        [one for one in go if not one.on_completion],
        [Unremovable(one.node, reason, detail=one.on_completion[0].key) for one in running],
    )
