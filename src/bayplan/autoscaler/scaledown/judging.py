"""What every node is used for and whether it is looked at, kept from loop to loop.

A node is judged again when it, what is on it, or what its group wishes has changed; one with pods
that are about to end is judged every time, since time alone can change that. So a loop in which
nothing happens costs one look at each node.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bayplan.autoscaler.groups import GroupView
from bayplan.autoscaler.scaledown.eligibility import ineligible
from bayplan.autoscaler.scaledown.reasons import Unremovable
from bayplan.autoscaler.scaledown.taints import TO_BE_DELETED, has_taint
from bayplan.autoscaler.scaledown.utilization import (
    Counting,
    Requests,
    Utilization,
    utilization,
)
from bayplan.autoscaler.world import World
from bayplan.fit.batches.template import GATE
from bayplan.fit.state.cluster import Cluster
from bayplan.fit.state.columns import SlotChanges
from bayplan.fit.state.pods import PodRecord
from bayplan.fit.volumes.limits import NO_LIMIT
from bayplan.kube.nodes import Node
from bayplan.nodegroups import GroupOptions


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """A node as it was judged."""

    node: Node
    options: GroupOptions | None
    """What its group wishes; None if it is in no group."""
    used: Utilization | None
    stays: Unremovable | None
    """Why it is not looked at; None if it is."""


class Judgements:
    """All nodes, judged."""

    def __init__(self, gpu_label: str = "") -> None:
        self._gpu_label = gpu_label
        self._known: dict[str, Judged] = {}
        self._requests = Requests()
        self._cursors = [-1, -1]

    def of(self, world: World) -> dict[str, Judged]:
        """Every node of a world."""
        cluster = world.snapshot.cluster
        self._forget_changed(cluster)
        known = self._known
        judged: dict[str, Judged] = {}
        for name, slot in cluster.slots.by_name.items():
            view = world.groups.get(world.group_of.get(name, ""))
            options = None if view is None else view.options
            found = known.get(name)
            node = cluster.node_at(slot)
            if found is not None and found.node is not node and _says_the_same(found.node, node):
                found = known[name] = replace(found, node=node)
            if found is None or found.node is not node or not _wishes(found, options):
                found = self._judge(world, slot, view)
            judged[name] = found
        return judged

    def _judge(self, world: World, slot: int, view: GroupView | None) -> Judged:
        cluster = world.snapshot.cluster
        node = cluster.node_at(slot)
        records = cluster.records_on(node.name)
        counting = _counting(world, view, self._gpu_label)
        used = utilization(node, records, counting, self._requests)
        if used is not None and world.snapshot.profile.gates.enabled(GATE):
            used = replace(used, volumes=_volume_shares(cluster, slot))
        reason = ineligible(node, view, used, world, self._gpu_label)
        stays = None if reason is None else Unremovable(node.name, reason, None, _detail(used))
        judged = Judged(node, None if view is None else view.options, used, stays)
        if not _time_matters(node, records):
            self._known[node.name] = judged
        return judged

    def _forget_changed(self, cluster: Cluster) -> None:
        for number, log in enumerate((cluster.usage_changes, cluster.node_changes)):
            self._forget(cluster, log, self._cursors[number])
            self._cursors[number] = log.end

    def _forget(self, cluster: Cluster, log: SlotChanges, cursor: int) -> None:
        changed = log.since(cursor, cluster.slots.capacity)
        if isinstance(changed, slice):
            self._known.clear()
        elif changed is not None:
            for slot in changed.tolist():
                self._known.pop(cluster.slots.names[slot], None)


def _wishes(found: Judged, options: GroupOptions | None) -> bool:
    """Whether a node was judged by what its group wishes; mostly that is the same object."""
    return found.options is options or found.options == options


def _says_the_same(before: Node, now: Node) -> bool:
    """Whether a node says nothing new that it is judged by, as with every heartbeat."""
    old, new = before.metadata, now.metadata
    same = old.uid == new.uid and old.labels == new.labels and old.annotations == new.annotations
    return same and before.spec == now.spec and before.status == now.status


def _counting(world: World, view: GroupView | None, gpu_label: str) -> Counting:
    options = world.options.group_defaults() if view is None else view.options
    ignores_mirrors = world.options.ignore_mirror_pods_utilization
    return Counting(world.now, options.ignore_daemon_sets_utilization, ignores_mirrors, gpu_label)


def _volume_shares(cluster: Cluster, slot: int) -> dict[str, float]:
    """By driver with a limit here, what part of the places for volumes is taken."""
    places = cluster.volume_places
    shares: dict[str, float] = {}
    for driver in places.drivers():
        columns = places.columns(driver)
        used, limit = int(columns.used[slot]), int(columns.limit[slot])
        if used and limit < NO_LIMIT:
            shares[driver] = used / limit if limit else float("inf")
    return shares


def _detail(used: Utilization | None) -> str:
    return "" if used is None else f"{used.resource} requested is {used.value:.1%} of allocatable"


def _time_matters(node: Node, records: list[PodRecord]) -> bool:
    return has_taint(node, TO_BE_DELETED) or any(record.terminating for record in records)
