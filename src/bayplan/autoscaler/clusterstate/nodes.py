"""The cluster's nodes, each with its group and how it stands; kept as they come and change.

Most of the time most nodes are ready and stay so. Only those that have changed are looked at again,
and those that are on their way, whose time passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime

from bayplan.autoscaler.clusterstate.readiness import (
    NodeReadiness,
    NodeState,
    ReadinessCriteria,
    update_readiness,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode


class NodeStates:
    """All nodes."""

    def __init__(
        self,
        options: AutoscalerOptions,
        csinode_of: Callable[[str], CSINode | None],
        *,
        asks_drivers: bool = True,
    ) -> None:
        self._options = options
        self._nobody = ReadinessCriteria(options.max_node_startup_time, asks_drivers=asks_drivers)
        """What is expected of nodes that are in no group."""
        self._csinode_of = csinode_of
        self._changed: set[str] = set()
        self._unsettled: set[str] = set()
        self._groups: Mapping[str, str] = {}
        self.members: dict[str, NodeState] = {}
        self.by_provider: dict[str, str] = {}
        """Names of nodes by what the cloud calls them."""
        self.by_group: dict[str, set[str]] = {}
        self.group_of: dict[str, str] = {}
        """Of nodes that are in one."""
        self.versions: Counter[str] = Counter()
        """By group, a number that moves whenever one of its nodes stands otherwise."""
        self.registrations = 0
        """A number that moves whenever a node comes or goes."""

    def hear(self, event: Event) -> None:
        """An object came, changed or went."""
        if event.kind is CSINode:
            self._changed.add(event.key)
            self._report(event.key)
        elif event.kind is Node:
            if isinstance(event.after, Node):
                self._seen(event.after)
            else:
                self._gone(event.key)

    def assign(self, groups: Mapping[str, str]) -> None:
        """Say which groups nodes are of, by what the cloud calls them."""
        if groups is not self._groups:
            self._groups = groups
            for name, member in self.members.items():
                self._join(name, member)

    def look(self, promises: Mapping[str, ReadinessCriteria], now: datetime) -> None:
        """Look at whatever may stand otherwise now, by what their groups promise."""
        for name in sorted(self._changed | self._unsettled):
            if name in self.members:
                self._look(name, self.members[name], promises, now)
        self._changed.clear()

    def standing(self, standing: NodeReadiness) -> list[str]:
        """The nodes that stand so."""
        if standing is NodeReadiness.READY:
            return [name for name, one in self.members.items() if one.standing is standing]
        return sorted(n for n in self._unsettled if self.members[n].standing is standing)

    def of_group(self, group: str) -> list[tuple[str, NodeState]]:
        """The nodes of a group, in order."""
        return [(name, self.members[name]) for name in sorted(self.by_group.get(group, ()))]

    def _seen(self, node: Node) -> None:
        known = self.members.get(node.name)
        if known is not None and known.node.metadata.uid == node.metadata.uid:
            moved = known.node.spec.provider_id != node.spec.provider_id
            known.node = node
        else:
            if known is not None:
                self._gone(node.name)
            known = self.members[node.name] = NodeState(node)
            moved = True
        if moved:
            if node.spec.provider_id:
                self.by_provider[node.spec.provider_id] = node.name
            self.registrations += 1
            self._join(node.name, known)
        self._changed.add(node.name)

    def _gone(self, name: str) -> None:
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
            member.complete = False  # it was complete by what another group promises, or none
            self._changed.add(name)
            members.add(name)
            self.group_of.pop(name, None)
            if group:
                self.group_of[name] = group

    def _report(self, name: str) -> None:
        """What a node's drivers say has changed, and with it what its group's nodes can do."""
        member = self.members.get(name)
        if member is not None:
            self.versions[member.group] += 1

    def _look(
        self, name: str, member: NodeState, promises: Mapping[str, ReadinessCriteria], now: datetime
    ) -> None:
        before = member.standing, member.missing
        promise = promises.get(member.group, self._nobody)
        update_readiness(member, self._csinode_of(name), promise, self._options, now)
        settled = member.standing is NodeReadiness.READY
        (self._unsettled.discard if settled else self._unsettled.add)(name)
        if before != (member.standing, member.missing):
            self.versions[member.group] += 1
