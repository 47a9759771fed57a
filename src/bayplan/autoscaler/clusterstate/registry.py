"""What of every group has come, what is on its way, and what never will.

Of a group's target, nodes that are ready or late have come, and instances that failed or did not
register in time never will. The rest is upcoming: registered nodes that are neither ready nor late,
and instances that are no node yet. A purchase whose nodes are not all there in time has failed, and
its group rests; so does a group whose instances fail, or whose drivers do not come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.nodegroups import Instance, InstanceState


@dataclass(frozen=True, slots=True)
class Upcoming:
    """Nodes of one group that are on their way."""

    instances: int = 0
    """Those that are ordered, and no node yet."""
    nodes: tuple[str, ...] = ()
    """Those that are registered, and neither ready nor late."""

    def __len__(self) -> int:
        return self.instances + len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class GroupState:
    """What of a group has come."""

    target: int = 0
    there: int = 0
    """How many instances it has that are not on their way out."""
    ready: int = 0
    starting: tuple[str, ...] = ()
    """Registered nodes that are neither ready nor late, those that wait for drivers too."""
    unready: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    """Nodes whose drivers did not come."""
    unregistered: tuple[Instance, ...] = ()
    long_unregistered: tuple[Instance, ...] = ()
    failed: tuple[Instance, ...] = ()

    @property
    def registered(self) -> int:
        """How many nodes it has."""
        return self.ready + len(self.starting) + len(self.unready) + len(self.late)

    @property
    def upcoming(self) -> Upcoming:
        """What is on its way."""
        settled = self.ready + len(self.unready) + len(self.late)
        lost = len(self.long_unregistered) + len(self.failed)
        count = max(0, self.target - settled - lost)
        nodes = self.starting[:count]
        return Upcoming(count - len(nodes), nodes)


@dataclass(frozen=True, slots=True)
class ScaleUpRequest:
    """A purchase that has not all come."""

    count: int
    by: datetime
    """When it should have."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A group that has fewer instances than it is meant to have."""

    missing: int
    since: datetime


@dataclass(slots=True)
class ClusterStateRegistry:
    """What is remembered of groups from loop to loop."""

    options: AutoscalerOptions
    states: dict[str, GroupState] = field(default_factory=dict)
    ordered: dict[str, ScaleUpRequest] = field(default_factory=dict)
    shortfalls: dict[str, Shortfall] = field(default_factory=dict)
    _since: dict[str, datetime] = field(default_factory=dict)
    """When instances without a node were first seen."""
    _seen: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def update(self, cloud: CloudState, node_states: NodeStates, now: datetime) -> None:
        """Take note of how everything stands now."""
        for name, asked in cloud.groups.items():
            seen = (
                asked.instances,
                asked.target,
                node_states.versions[name],
                node_states.registrations,
            )
            known, state = self._seen.get(name), self.states.get(name)
            same = known is not None and known[0] is seen[0] and known[1:] == seen[1:]
            if state is None or not same or state.unregistered:
                self.states[name] = self._state(asked, node_states, now)
                self._seen[name] = seen
            self._note_shortfall(asked, now)
        for gone in self.states.keys() - cloud.groups.keys():
            del self.states[gone], self._seen[gone]
            self.ordered.pop(gone, None)
            self.shortfalls.pop(gone, None)
        waiting = {one.provider_id for state in self.states.values() for one in _waiting(state)}
        self._since = {one: since for one, since in self._since.items() if one in waiting}

    def order(self, group: str, count: int, patience: float, now: datetime) -> None:
        """A purchase was made."""
        known = self.ordered.get(group)
        more = known.count if known is not None else 0
        self.ordered[group] = ScaleUpRequest(more + count, now + timedelta(seconds=patience))

    def settle_orders(self, now: datetime) -> tuple[list[str], list[str]]:
        """Groups all of whose nodes have come, and groups that did not manage in time."""
        come = [name for name in self.ordered if not len(self._upcoming(name))]
        late = [n for n, order in self.ordered.items() if n not in come and order.by < now]
        for name in (*come, *late):
            del self.ordered[name]
        return come, late

    def upcoming(self) -> dict[str, Upcoming]:
        """What is on its way, by group."""
        found = ((name, state.upcoming) for name, state in self.states.items())
        return {name: coming for name, coming in found if len(coming)}

    def is_healthy(self, node_states: NodeStates) -> bool:
        """Whether so few nodes are unready that deciding makes sense."""
        unready = len(node_states.standing(NodeReadiness.UNREADY)) + len(
            node_states.standing(NodeReadiness.LATE)
        )
        most = self.options.max_total_unready_percentage / 100 * len(node_states.members)
        return unready <= self.options.ok_total_unready_count or unready <= most

    def group_is_healthy(self, name: str) -> bool:
        """Whether a group has about as many ready nodes as it should by now."""
        state = self.states[name]
        coming = self.ordered[name].count if name in self.ordered else 0
        due = state.target - len(state.long_unregistered) - coming
        missing = max(0, due - state.ready)
        known = state.ready + len(state.unready) + len(state.late) + len(state.starting)
        if not known or missing <= self.options.ok_total_unready_count:
            return True
        return missing <= self.options.max_total_unready_percentage / 100 * known

    def _upcoming(self, name: str) -> Upcoming:
        state = self.states.get(name)
        return state.upcoming if state is not None else Upcoming()

    def _state(self, asked: NodeGroupInfo, node_states: NodeStates, now: datetime) -> GroupState:
        by: dict[NodeReadiness, list[str]] = {standing: [] for standing in NodeReadiness}
        for name, member in node_states.of_group(asked.group.id):
            by[member.standing].append(name)
        missing = [one for one in asked.instances if one.provider_id not in node_states.by_provider]
        failed = [one for one in missing if one.error is not None]
        coming = [one for one in missing if one.error is None and not _is_going(one)]
        patience = timedelta(seconds=asked.options.max_node_provision_time)
        late = {
            one.provider_id
            for one in coming
            if self._since.setdefault(one.provider_id, now) + patience < now
        }
        return GroupState(
            target=asked.target,
            there=sum(1 for one in asked.instances if not _is_going(one)),
            ready=len(by[NodeReadiness.READY]),
            starting=(*by[NodeReadiness.AWAITING], *by[NodeReadiness.STARTING]),
            unready=tuple(by[NodeReadiness.UNREADY]),
            late=tuple(by[NodeReadiness.LATE]),
            unregistered=tuple(one for one in coming if one.provider_id not in late),
            long_unregistered=tuple(one for one in coming if one.provider_id in late),
            failed=tuple(failed),
        )

    def _note_shortfall(self, asked: NodeGroupInfo, now: datetime) -> None:
        name = asked.group.id
        missing = asked.target - self.states[name].there
        known = self.shortfalls.get(name)
        if missing <= 0 or asked.stale:
            self.shortfalls.pop(name, None)
        elif known is None or known.missing != missing:
            self.shortfalls[name] = Shortfall(missing, now)


def group_by_provider_id(groups: Iterable[NodeGroupInfo]) -> Mapping[str, str]:
    """By what the cloud calls an instance, the group that it is of; not for those on their way
    out.
    """
    return {
        one.provider_id: asked.group.id
        for asked in groups
        for one in asked.instances
        if one.provider_id and not _is_going(one) and one.error is None
    }


def _is_going(one: Instance) -> bool:
    return one.state is InstanceState.DELETING


def _waiting(state: GroupState) -> tuple[Instance, ...]:
    return state.unregistered + state.long_unregistered
