"""The cluster's nodes with their groups and readiness, updated as they change.

Most nodes are ready and stay so. Only nodes that have changed are checked again, and those that are
not ready, whose readiness depends on the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from bayplan.autoscaler.clusterstate.readiness import (
    DRIVERS_REGISTERED,
    NodeReadiness,
    NodeState,
    ReadinessCriteria,
    update_readiness,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode


class NodeStates:
    """The state of all nodes."""

    def __init__(
        self,
        options: AutoscalerOptions,
        csinode_of: Callable[[str], CSINode | None],
        *,
        waits_for_drivers: bool = True,
    ) -> None:
        self._options = options
        self._default_criteria = ReadinessCriteria(
            options.max_node_startup_time, waits_for_drivers=waits_for_drivers
        )
        """The criteria of nodes without a group."""
        self._csinode_of = csinode_of
        self._changed: set[str] = set()
        self._unsettled: set[str] = set()
        self._groups: Mapping[str, str] = {}
        self.members: dict[str, NodeState] = {}
        self.by_provider: dict[str, str] = {}
        """Names of nodes by provider ID."""
        self.by_group: dict[str, set[str]] = {}
        self.group_of: dict[str, str] = {}
        """By node, its group; nodes without a group are left out."""
        self.versions: Counter[str] = Counter()
        """By group, a number that increases when the readiness of one of its nodes changes."""
        self.registrations = 0
        """A number that increases when a node is added or deleted."""
        self._completed: dict[str, None] = {}
        """Nodes whose drivers have just registered, which is not written down yet."""

    def on_event(self, event: ClusterEvent) -> None:
        """Update the state with an added, updated or deleted object."""
        if event.kind is CSINode:
            self._changed.add(event.key)
            self._drivers_changed(event.key)
        elif event.kind is Node:
            if isinstance(event.after, Node):
                self._put_node(event.after)
            else:
                self._delete_node(event.key)

    def assign(self, groups: Mapping[str, str]) -> None:
        """Set the groups of nodes, by provider ID."""
        if groups is not self._groups:
            self._groups = groups
            for name, member in self.members.items():
                self._join(name, member)

    def update(self, criteria_by_group: Mapping[str, ReadinessCriteria], now: datetime) -> None:
        """Update the readiness of nodes by the criteria of their groups."""
        for name in sorted(self._changed | self._unsettled):
            if name in self.members:
                self._update_node(name, self.members[name], criteria_by_group, now)
        self._changed.clear()

    def in_state(self, readiness: NodeReadiness) -> list[str]:
        """Return the nodes with that readiness."""
        if readiness is NodeReadiness.READY:
            return [name for name, one in self.members.items() if one.readiness is readiness]
        return sorted(n for n in self._unsettled if self.members[n].readiness is readiness)

    def of_group(self, group: str) -> list[tuple[str, NodeState]]:
        """Return the nodes of a group, by name."""
        return [(name, self.members[name]) for name in sorted(self.by_group.get(group, ()))]

    def newly_complete(self, most: int) -> list[Node]:
        """Return nodes whose drivers have all registered, each once."""
        names = list(self._completed)[:most]
        for name in names:
            del self._completed[name]
        return [self.members[name].node for name in names if name in self.members]

    def annotate_later(self, name: str) -> None:
        """Return a node once more from `newly_complete`."""
        self._completed[name] = None

    def _put_node(self, node: Node) -> None:
        known = self.members.get(node.name)
        if known is not None and known.node.metadata.uid == node.metadata.uid:
            moved = known.node.spec.provider_id != node.spec.provider_id
            known.node = node
        else:
            if known is not None:
                self._delete_node(node.name)
            known = self.members[node.name] = NodeState(node)
            moved = True
        if moved:
            if node.spec.provider_id:
                self.by_provider[node.spec.provider_id] = node.name
            self.registrations += 1
            self._join(node.name, known)
        self._changed.add(node.name)

    def _delete_node(self, name: str) -> None:
        member = self.members.pop(name, None)
        self._changed.discard(name)
        self._unsettled.discard(name)
        if member is not None:
            self.registrations += 1
            if self.by_provider.get(member.node.spec.provider_id) == name:
                del self.by_provider[member.node.spec.provider_id]
            self.by_group.get(member.group, set()).discard(name)
            self.group_of.pop(name, None)
            self.versions[member.group] += 1

    def _join(self, name: str, member: NodeState) -> None:
        group = self._groups.get(member.node.spec.provider_id, "")
        members = self.by_group.setdefault(group, set())
        if group != member.group or name not in members:
            self.by_group.get(member.group, set()).discard(name)
            self.versions[member.group] += 1
            self.versions[group] += 1
            member.group = group
            member.complete = False  # it was complete by the criteria of another group
            self._changed.add(name)
            members.add(name)
            self.group_of.pop(name, None)
            if group:
                self.group_of[name] = group

    def _drivers_changed(self, name: str) -> None:
        """Note that a node's CSINode changed, which its group's template depends on."""
        member = self.members.get(name)
        if member is not None:
            self.versions[member.group] += 1

    def _update_node(
        self,
        name: str,
        member: NodeState,
        criteria_by_group: Mapping[str, ReadinessCriteria],
        now: datetime,
    ) -> None:
        before = member.readiness, member.missing
        criteria = criteria_by_group.get(member.group, self._default_criteria)
        was_complete = member.complete
        update_readiness(member, self._csinode_of(name), criteria, self._options, now)
        if member.group and member.complete and not was_complete and criteria.drivers:
            self._note_complete(name, member, now)
        is_ready_now = member.readiness is NodeReadiness.READY
        (self._unsettled.discard if is_ready_now else self._unsettled.add)(name)
        if before != (member.readiness, member.missing):
            self.versions[member.group] += 1

    def _note_complete(self, name: str, member: NodeState, now: datetime) -> None:
        """Note that a young node has its drivers; of an older one they are never missing."""
        young = timedelta(seconds=2 * self._options.csi_driver_startup_time)
        since = member.ready_since
        recorded = DRIVERS_REGISTERED in member.node.metadata.annotations
        if not recorded and since is not None and now < since + young:
            self._completed[name] = None
