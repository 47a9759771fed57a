"""The picture of a cluster: all rows of the page, updated as the cluster changes.

Changes mark pods and nodes as dirty. `work` draws what is dirty, within a time limit; so one change
costs one pod and its node, whatever the size of the cluster, and the first picture of a large
cluster is drawn in time slices. Drawing too often does no harm, since only changed rows are sent.
"""

from __future__ import annotations

import heapq
import re
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from bayplan.fit import Snapshot
from bayplan.fit.hints import ClusterEvent as Change
from bayplan.fit.state.volume_report import node_volumes
from bayplan.fit.volumes.identity import VolumeIdentity
from bayplan.kube.events import Event
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import (
    CSIDriver,
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from bayplan.kube.volcano import PodGroup
from bayplan.kube.workloads import PriorityClass
from bayplan.ui import texts
from bayplan.ui.picture.events import Events
from bayplan.ui.picture.groups import Groups
from bayplan.ui.picture.members import PodGroupIndex
from bayplan.ui.picture.nodes import (
    attach_limit_row,
    missing_drivers,
    node_row,
    note_of,
    volumes_on,
    zone_of,
)
from bayplan.ui.picture.pending import PendingPodsTable
from bayplan.ui.picture.pods import pod_row, queue_of, state_of, stuck_from
from bayplan.ui.tables import Tables

SLICE = 64
"""Rows that are drawn between two checks of the time."""
TRIGGERED = "TriggeredScaleUp"
MAX_TRIGGERS = 10_000
"""Number of scale-up triggers that are kept before those of deleted pods are removed."""
_SCALED_GROUP = re.compile(r"\{([^{}]{1,500}) \d+->\d+ \(max: \d+\)\}")
_STORAGE = frozenset({CSIDriver, StorageClass, PersistentVolume})
"""Kinds of which one object may affect the volumes of many pods."""


class Picture:
    """Updates the tables of the page as a snapshot changes."""

    def __init__(self, snapshot: Snapshot, now: Callable[[], datetime]) -> None:
        self.snapshot = snapshot
        self.tables = Tables()
        self.pending = PendingPodsTable(snapshot, self.tables)
        self.events = Events(self.tables)
        self.groups = Groups(self.tables, snapshot.cluster.node_named)
        self.pod_groups: dict[str, PodGroup] = {}
        self._members: PodGroupIndex | None = None
        """The pods of pod groups, once there are any."""
        self._cluster = snapshot.cluster
        self._now = now
        self._pods: dict[str, None] = {}
        self._nodes: dict[str, None] = {}
        self._usage_seen = self._nodes_seen = 0
        self._attach_limits: dict[str, tuple[str, ...]] = {}
        self._zones: Counter[str] = Counter()
        self._zone_of: dict[str, str] = {}
        self._starting: list[tuple[datetime, str]] = []
        self._stuck_from: dict[str, datetime] = {}
        """The same by pod, so that none is added twice."""
        self._wanted: Counter[VolumeIdentity] = Counter()
        self._wanted_by: dict[str, tuple[VolumeIdentity, ...]] = {}
        self._wanted_drawn: frozenset[VolumeIdentity] = frozenset()
        self._triggered: dict[str, str] = {}
        """By pod, the node group that was scaled up for it."""
        self._upcoming: dict[str, str] = {}
        """By pod, the upcoming node for it."""
        self.all()

    # -- changes ------------------------------------------------------------------

    def all(self) -> None:
        """Mark everything as dirty."""
        self._pods.update(dict.fromkeys(self._cluster.pods.by_key))
        self.all_nodes()

    def all_nodes(self) -> None:
        """Mark every node as dirty."""
        self._nodes.update(dict.fromkeys(self._cluster.slots.by_name))

    def hear(self, change: Change) -> None:
        """Handle a change of the snapshot."""
        kind = change.kind
        if kind is Pod:
            self._pods[change.key] = None
            if _is_nominated(change.before) or _is_nominated(change.after):
                self.pending.mark_changed()
            return
        if kind is Node:
            self._nodes[change.key] = None
            return
        self.pending.mark_changed()
        if kind is CSINode:
            self._hear_csinode(change)
        elif kind is PersistentVolumeClaim:
            self._pods.update(dict.fromkeys(self._cluster.pods.by_claim.of(change.key)))
        elif kind is VolumeAttachment:
            self._nodes.update(dict.fromkeys(_nodes_of(change)))
        elif kind in _STORAGE:
            self._hear_of_storage(change)
        elif kind is PriorityClass:
            self._pods.update(dict.fromkeys(self._cluster.pods.by_key))

    def put_pod_group(self, group: PodGroup | None, key: str) -> None:
        """Handle an added, changed or deleted (None) pod group."""
        before = self.pod_groups.pop(key, None)
        if group is not None:
            self.pod_groups[key] = group
        queues = {one.spec.queue if one is not None else None for one in (before, group)}
        if self._members is None:
            self._members = PodGroupIndex(one.pod for one in self._cluster.pods.by_key.values())
        if len(queues) > 1:
            self._pods.update(dict.fromkeys(self._members.of(key)))

    def put_event(self, event: Event) -> None:
        """Handle an event."""
        self.events.put(event)
        about = event.regarding
        if event.reason == TRIGGERED and about.kind == "Pod":
            scaled = _SCALED_GROUP.search(event.note[:2000])
            if scaled is not None:
                self._triggered[f"{about.namespace}/{about.name}"] = scaled[1]
                self.groups.dirty = True

    def hold(self, held: dict[str, str]) -> None:
        """Set the pods that their queues do not admit, with the reasons."""
        before = self.pending.held
        self.pending.held = held
        changed = [key for key in before.keys() | held.keys() if before.get(key) != held.get(key)]
        self._pods.update(dict.fromkeys(key for key in changed if key in self.pending))
        self.pending.mark_changed()

    def _hear_csinode(self, change: Change) -> None:
        self._nodes[change.key] = None
        before, after = (_drivers(one) for one in (change.before, change.after))
        if before != after:
            self.all_nodes()  # an unknown driver may be a CSI driver now

    def _hear_of_storage(self, change: Change) -> None:
        storage = self._cluster.storage
        if change.kind is CSIDriver:
            self.all_nodes()
            return
        by_kind = storage.claims_of_volume if change.kind is PersistentVolume else None
        claims = (by_kind or storage.claims_of_class).of(change.key)
        self._pods.update(
            dict.fromkeys(pod for claim in claims for pod in self._cluster.pods.by_claim.of(claim))
        )

    # -- drawing -------------------------------------------------------------------------------

    def work(self, goes_on: Callable[[], bool] = lambda: True) -> bool:
        """Draw what is dirty while `goes_on()`; return whether everything is drawn."""
        self._note_usage()
        while self._pods or self._nodes:
            if not goes_on():
                return False
            for _ in range(SLICE):
                if self._pods:
                    self._draw_pod(self._pods.popitem()[0])
                elif self._nodes:
                    self._draw_node(self._nodes.popitem()[0])
            if not self._pods:
                self._look_at_wanted()
        return True

    def finish(self) -> None:
        """Write the rows that depend on many pods and nodes."""
        if self.groups.dirty:
            self.groups.write()
            self._assign_upcoming()
        self.pending.write()
        self.events.trim()

    def tick(self) -> None:
        """Mark pods that have been starting for too long."""
        now = self._now()
        while self._starting and self._starting[0][0] <= now:
            key = heapq.heappop(self._starting)[1]
            self._stuck_from.pop(key, None)
            self._pods[key] = None

    def draw_all(self) -> None:
        """Draw everything, including the causes of pending pods, without a time limit."""
        self.tick()
        while not self.work() or self.pending.compute_one():
            pass
        self.finish()
        self.work()
        self.finish()

    def _note_usage(self) -> None:
        """Mark the nodes whose usage has changed since the last call."""
        cluster = self._cluster
        for log, seen in (
            (cluster.usage_changes, self._usage_seen),
            (cluster.node_changes, self._nodes_seen),
        ):
            slots = log.after(seen)
            if slots is None:
                self.all_nodes()
                continue
            names = cluster.slots.names
            for slot in set(slots):
                if cluster.nodes[slot] is not None:
                    self._nodes[names[slot]] = None
        self._usage_seen, self._nodes_seen = cluster.usage_changes.end, cluster.node_changes.end
        if cluster.usage_changes.is_long or cluster.node_changes.is_long:
            cluster.trim()  # without pending pods nothing else does it

    def _draw_pod(self, key: str) -> None:
        record = self._cluster.pods.by_key.get(key)
        if record is None or record.pod.is_terminal:
            self._forget_pod(key)
            return
        if self._members is not None:
            self._members.put(record.pod)
        pod, waits = record.pod, not record.node and not record.pod.is_terminating
        state = state_of(pod, record.node, self._now())
        if waits:
            self.pending.put(record)
        else:
            self.pending.drop(key)
        self._want(key, record.volumes if waits else ())
        if not waits and self._upcoming.pop(key, None) is not None:
            self.groups.dirty = True
        if state == "starting" and (moment := stuck_from(pod)) is not None:
            self._look_again(moment, key)
        queue = queue_of(pod, self.pod_groups)
        priority, upcoming = self.snapshot.priority(pod), self._upcoming.get(key, "")
        self.tables.set("pods", pod_row(record, priority, state, queue, upcoming))

    def _look_again(self, moment: datetime, key: str) -> None:
        if self._stuck_from.get(key) != moment:
            self._stuck_from[key] = moment
            heapq.heappush(self._starting, (moment, key))

    def _forget_pod(self, key: str) -> None:
        if self._members is not None:
            self._members.drop(key)
        self.pending.drop(key)
        self._want(key, ())
        self._triggered.pop(key, None)
        self._upcoming.pop(key, None)
        self.tables.drop("pods", texts.identity(key))

    def _want(self, key: str, volumes: tuple[VolumeIdentity, ...]) -> None:
        """Count the drivers that pending pods need."""
        for one in self._wanted_by.pop(key, ()):
            driver = _driver_of(one)
            self._wanted[driver] -= 1
            if not self._wanted[driver]:
                del self._wanted[driver]
        if volumes:
            self._wanted_by[key] = volumes
            self._wanted.update(map(_driver_of, volumes))

    def _look_at_wanted(self) -> None:
        wanted = frozenset(self._wanted)
        if wanted != self._wanted_drawn:
            self._wanted_drawn = wanted
            self.all_nodes()

    def _draw_node(self, name: str) -> None:
        node = self._cluster.node_named(name)
        if node is None:
            self._forget_node(name)
            return
        reports = node_volumes(self._cluster, name)
        here = missing_drivers(self._cluster, name, volumes_on(self._cluster, name))
        wanted = missing_drivers(self._cluster, name, self._wanted_drawn)
        group = self.groups.assign(node)
        self.tables.set("nodes", node_row(node, group, note_of(reports), here | wanted))
        rows = [attach_limit_row(one) for one in reports]
        for row in rows:
            self.tables.set("rails", row)
        names = tuple(str(row[0]) for row in rows)
        self._drop_attach_limits(name, keep=names)
        if names:
            self._attach_limits[name] = names
        self._place_in_zone(name, zone_of(node))

    def _forget_node(self, name: str) -> None:
        self._drop_attach_limits(name)
        self.groups.forget(name)
        self._place_in_zone(name, None)
        self.tables.drop("nodes", texts.identity(name))

    def _drop_attach_limits(self, node: str, keep: Iterable[str] = ()) -> None:
        kept = set(keep)
        for name in self._attach_limits.pop(node, ()):
            if name not in kept:
                self.tables.drop("rails", name)

    def _place_in_zone(self, node: str, zone: str | None) -> None:
        before = self._zone_of.pop(node, None)
        if zone is not None:
            self._zone_of[node] = zone
        for one, sign in ((before, -1), (zone, 1)):
            if one is not None:
                self._zones[one] += sign
                if self._zones[one] == 0:
                    del self._zones[one]
                    self.tables.drop("zones", one)
                else:
                    self.tables.set("zones", [one])

    def _assign_upcoming(self) -> None:
        """Distribute pods that triggered a scale-up over the upcoming nodes of the group."""
        assigned: dict[str, str] = {}
        upcoming = self.groups.upcoming_nodes()
        if len(self._triggered) > MAX_TRIGGERS:  # most of them were deleted long ago
            self._triggered = {
                pod: one for pod, one in self._triggered.items() if pod in self.pending
            }
        by_group: dict[str, list[str]] = {}
        for pod, group in self._triggered.items():
            if pod in self.pending and texts.identity(group) in upcoming:
                by_group.setdefault(texts.identity(group), []).append(pod)
        for group, pods in by_group.items():
            names = upcoming[group]
            each = -(-len(pods) // len(names))
            assigned.update((pod, names[number // each]) for number, pod in enumerate(sorted(pods)))
        changed = [
            k
            for k in assigned.keys() | self._upcoming.keys()
            if assigned.get(k) != self._upcoming.get(k)
        ]
        self._upcoming = assigned
        self._pods.update(dict.fromkeys(changed))


def _is_nominated(pod: KubeObject | None) -> bool:
    return isinstance(pod, Pod) and bool(pod.status.nominated_node_name)


def _driver_of(volume: VolumeIdentity) -> VolumeIdentity:
    """Return the part of a volume that determines its driver."""
    return VolumeIdentity(volume.driver, "", volume.plugin, volume.is_certainly_csi)


def _drivers(obj: KubeObject | None) -> frozenset[str]:
    return (
        frozenset(one.name for one in obj.spec.drivers) if isinstance(obj, CSINode) else frozenset()
    )


def _nodes_of(change: Change) -> set[str]:
    found = (change.before, change.after)
    return {one.spec.node_name for one in found if isinstance(one, VolumeAttachment)}
