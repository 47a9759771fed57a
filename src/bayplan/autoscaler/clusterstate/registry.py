"""The state of every group: registered, upcoming, unregistered and failed nodes.

Upcoming nodes are a group's target size without ready and unready nodes, nodes with missing
drivers, failed instances and long unregistered ones. A scale-up whose nodes are not all ready in
time has failed, and its group is backed off; so is a group whose instances fail, or whose drivers
are missing.
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
class UpcomingNodes:
    """The upcoming nodes of one group."""

    instances: int = 0
    """The number of requested instances without a node."""
    nodes: tuple[str, ...] = ()
    """Registered nodes that are not ready yet."""

    def __len__(self) -> int:
        return self.instances + len(self.nodes)


@dataclass(frozen=True, slots=True, eq=False)
class GroupState:
    """The nodes and instances of a group, by state."""

    target: int = 0
    current_size: int = 0
    """The number of instances that are not being deleted."""
    ready: int = 0
    not_started: tuple[str, ...] = ()
    """Registered nodes that are not ready yet, including those that wait for drivers."""
    unready: tuple[str, ...] = ()
    missing_drivers: tuple[str, ...] = ()
    """Nodes whose drivers did not register in time."""
    unregistered: tuple[Instance, ...] = ()
    long_unregistered: tuple[Instance, ...] = ()
    failed: tuple[Instance, ...] = ()

    @property
    def registered(self) -> int:
        """The number of registered nodes."""
        return self.ready + len(self.not_started) + len(self.unready) + len(self.missing_drivers)

    @property
    def upcoming(self) -> UpcomingNodes:
        """The upcoming nodes."""
        counted = self.ready + len(self.unready) + len(self.missing_drivers)
        lost = len(self.long_unregistered) + len(self.failed)
        count = max(0, self.target - counted - lost)
        nodes = self.not_started[:count]
        return UpcomingNodes(count - len(nodes), nodes)


@dataclass(frozen=True, slots=True)
class ScaleUpRequest:
    """A scale-up whose nodes are not all ready."""

    count: int
    by: datetime
    """The time by which they should be."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """The instances that a group lacks to its target size, and since when."""

    missing: int
    since: datetime


@dataclass(slots=True)
class ClusterStateRegistry:
    """The state of all groups, kept from loop to loop."""

    options: AutoscalerOptions
    states: dict[str, GroupState] = field(default_factory=dict)
    scale_up_requests: dict[str, ScaleUpRequest] = field(default_factory=dict)
    shortfalls: dict[str, Shortfall] = field(default_factory=dict)
    _since: dict[str, datetime] = field(default_factory=dict)
    """When unregistered instances were first observed."""
    _seen: dict[str, tuple[object, ...]] = field(default_factory=dict)

    def update(self, cloud: CloudState, node_states: NodeStates, now: datetime) -> None:
        """Update the state of all groups."""
        for name, info in cloud.groups.items():
            seen = (
                info.instances,
                info.target,
                node_states.versions[name],
                node_states.registrations,
            )
            known, state = self._seen.get(name), self.states.get(name)
            same = known is not None and known[0] is seen[0] and known[1:] == seen[1:]
            if state is None or not same or state.unregistered:
                self.states[name] = self._state(info, node_states, now)
                self._seen[name] = seen
            self._note_shortfall(info, now)
        for gone in self.states.keys() - cloud.groups.keys():
            del self.states[gone], self._seen[gone]
            self.scale_up_requests.pop(gone, None)
            self.shortfalls.pop(gone, None)
        waiting = {one.provider_id for state in self.states.values() for one in _waiting(state)}
        self._since = {one: since for one, since in self._since.items() if one in waiting}

    def register_scale_up(self, group: str, count: int, timeout: float, now: datetime) -> None:
        """Register a scale-up."""
        known = self.scale_up_requests.get(group)
        more = known.count if known is not None else 0
        self.scale_up_requests[group] = ScaleUpRequest(
            more + count, now + timedelta(seconds=timeout)
        )

    def update_scale_up_requests(self, now: datetime) -> tuple[list[str], list[str]]:
        """Remove finished scale-ups; return the groups that succeeded and that timed out."""
        requests = self.scale_up_requests
        succeeded = [name for name in requests if not len(self._upcoming(name))]
        timed_out = [n for n, one in requests.items() if n not in succeeded and one.by < now]
        for name in (*succeeded, *timed_out):
            del requests[name]
        return succeeded, timed_out

    def upcoming(self) -> dict[str, UpcomingNodes]:
        """Return the upcoming nodes by group."""
        found = ((name, state.upcoming) for name, state in self.states.items())
        return {name: coming for name, coming in found if len(coming)}

    def is_healthy(self, node_states: NodeStates) -> bool:
        """Whether the cluster has few enough unready nodes for autoscaling."""
        unready = len(node_states.in_state(NodeReadiness.UNREADY)) + len(
            node_states.in_state(NodeReadiness.MISSING_DRIVERS)
        )
        most = self.options.max_total_unready_percentage / 100 * len(node_states.members)
        return unready <= self.options.ok_total_unready_count or unready <= most

    def group_is_healthy(self, name: str) -> bool:
        """Whether a group has about as many ready nodes as its target size."""
        state = self.states[name]
        coming = self.scale_up_requests[name].count if name in self.scale_up_requests else 0
        due = state.target - len(state.long_unregistered) - coming
        missing = max(0, due - state.ready)
        known = (
            state.ready + len(state.unready) + len(state.missing_drivers) + len(state.not_started)
        )
        if not known or missing <= self.options.ok_total_unready_count:
            return True
        return missing <= self.options.max_total_unready_percentage / 100 * known

    def _upcoming(self, name: str) -> UpcomingNodes:
        state = self.states.get(name)
        return state.upcoming if state is not None else UpcomingNodes()

    def _state(self, info: NodeGroupInfo, node_states: NodeStates, now: datetime) -> GroupState:
        by: dict[NodeReadiness, list[str]] = {readiness: [] for readiness in NodeReadiness}
        for name, member in node_states.of_group(info.group.id):
            by[member.readiness].append(name)
        missing = [one for one in info.instances if one.provider_id not in node_states.by_provider]
        failed = [one for one in missing if one.error is not None]
        coming = [one for one in missing if one.error is None and not _is_being_deleted(one)]
        timeout = timedelta(seconds=info.options.max_node_provision_time)
        long_unregistered = {
            one.provider_id
            for one in coming
            if self._since.setdefault(one.provider_id, now) + timeout < now
        }
        return GroupState(
            target=info.target,
            current_size=sum(1 for one in info.instances if not _is_being_deleted(one)),
            ready=len(by[NodeReadiness.READY]),
            not_started=(*by[NodeReadiness.AWAITING_DRIVERS], *by[NodeReadiness.NOT_STARTED]),
            unready=tuple(by[NodeReadiness.UNREADY]),
            missing_drivers=tuple(by[NodeReadiness.MISSING_DRIVERS]),
            unregistered=tuple(one for one in coming if one.provider_id not in long_unregistered),
            long_unregistered=tuple(one for one in coming if one.provider_id in long_unregistered),
            failed=tuple(failed),
        )

    def _note_shortfall(self, info: NodeGroupInfo, now: datetime) -> None:
        name = info.group.id
        missing = info.target - self.states[name].current_size
        known = self.shortfalls.get(name)
        if missing <= 0 or info.stale:
            self.shortfalls.pop(name, None)
        elif known is None or known.missing != missing:
            self.shortfalls[name] = Shortfall(missing, now)


def group_by_provider_id(groups: Iterable[NodeGroupInfo]) -> Mapping[str, str]:
    """Return the group of each instance by provider ID, without those being deleted or failed."""
    return {
        one.provider_id: info.group.id
        for info in groups
        for one in info.instances
        if one.provider_id and not _is_being_deleted(one) and one.error is None
    }


def _is_being_deleted(one: Instance) -> bool:
    return one.state is InstanceState.DELETING


def _waiting(state: GroupState) -> tuple[Instance, ...]:
    return state.unregistered + state.long_unregistered
