"""Cleanup of failed instances, and of target sizes that will never be reached.

Instances that failed, instances that never registered, and nodes whose drivers never came are
removed; a group that is meant to have instances which do not exist is told so. None of it takes a
group below its minimum unless an option says so. Everything is counted as a failure of its group,
once; and as removed once, however long the cloud goes on to list it.

A node whose drivers never came goes only if nothing but daemons is on it. It is tainted first, so
that nothing more comes, and looked at again after that; if something has come meanwhile, it keeps
its taint no longer and stays. A group that is at its minimum keeps the node as well, if its cloud
says so.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from bayplan.autoscaler import events
from bayplan.autoscaler.actuation.scale_up import ActuationContext
from bayplan.autoscaler.cloudstate.reader import CloudState, NodeGroupInfo, with_timeout
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.readiness import NodeReadiness
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.autoscaler.clusterstate.taints import TO_BE_DELETED, to_be_deleted, without_taint
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client, merge
from bayplan.client.errors import ClientError
from bayplan.kube.daemons import belongs_to_node
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod
from bayplan.nodegroups import Instance, NodeGroupError, NodeRef

log = logging.getLogger(__name__)
CODE = "CSI_DRIVER_MISSING"


@dataclass(slots=True)
class LateNodeCleanup:
    """Gives nodes up, and remembers whose failure has been counted."""

    context: ActuationContext
    options: AutoscalerOptions
    node_states: NodeStates
    client: Client | None
    """Whom nodes are tainted by; nobody in a dry run."""
    pods_on: Callable[[str], list[Pod]]
    _counted: set[str] = field(default_factory=set)

    async def clean_up(self, now: datetime) -> int:
        """Give up whatever is late; returns how many nodes were given back."""
        given = 0
        late = self.node_states.standing(NodeReadiness.LATE)
        uids = {self.node_states.members[name].node.metadata.uid for name in late}
        for name in late:
            member = self.node_states.members.get(name)
            if member is not None and member.group:
                self._tell(name)
                given += await self._remove(member.node, member.group, now)
        self._counted &= uids
        return given

    def _tell(self, name: str) -> None:
        member = self.node_states.members[name]
        uid, patience = member.node.metadata.uid, self.options.csi_driver_startup_time
        notice = events.drivers_missing(name, member.group, member.missing, patience)
        self.context.recorder.about(member.node, notice)
        if uid not in self._counted:
            self._counted.add(uid)
            self.context.recorder.about_all(notice)
            self.context.fail(member.group, CODE, notice.text)

    async def _remove(self, node: Node, group: str, now: datetime) -> int:
        if self._is_used(node.name):
            return 0
        try:
            tainted = await self._taint(node, [*_others(node), to_be_deleted(now)])
            if self._is_used(node.name):
                await self._taint(tainted, _others(node))
                return 0
            await self._delete(tainted, group)
        except (ClientError, NodeGroupError) as error:
            log.warning("node %s cannot be removed: %s", node.name, error)
            return 0
        return 1

    async def _delete(self, node: Node, group: str) -> None:
        try:
            await with_timeout(self.context.provider.delete_nodes(group, [NodeRef.of(node)]))
        except NodeGroupError:
            await self._taint(node, _others(node))
            raise
        log.info("removed", extra={"node": node.name, "group": group, "why": CODE})

    async def _taint(self, node: Node, taints: list[Taint]) -> Node:
        if self.client is None:
            return node
        meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        change = {"metadata": meta, "spec": {"taints": msgspec.to_builtins(taints)}}
        return await self.client.patch(Node, node.name, change=merge(change))

    def _is_used(self, name: str) -> bool:
        return any(not belongs_to_node(pod) for pod in self.pods_on(name))


def _others(node: Node) -> list[Taint]:
    return without_taint(node.spec.taints, TO_BE_DELETED)


TIMEOUT = "timeout"
FAILED = "instance error"


@dataclass(slots=True)
class FailedInstanceCleanup:
    """Remembers which failures have been counted."""

    context: ActuationContext
    options: AutoscalerOptions
    _counted: set[str] = field(default_factory=set)
    _given: set[str] = field(default_factory=set)

    async def clean_up(self, cloud: CloudState, now: datetime) -> int:
        """Give back what never will be; returns how much of it was given back."""
        self._settle_orders(cloud, now)
        given = 0
        for name, asked in sorted(cloud.groups.items()):
            if not asked.stale:
                state = self.context.registry.states[name]
                given += await self._failed(asked, state)
                given += await self._unregistered(asked, state)
                given += await self._fix_size(asked, now)
        if self._counted or self._given:
            listed = {one.provider_id for asked in cloud.groups.values() for one in asked.instances}
            self._counted &= listed
            self._given &= listed
        return given

    def _settle_orders(self, cloud: CloudState, now: datetime) -> None:
        registry = self.context.registry
        come, late = registry.settle_orders(now)
        for name in come:
            state = registry.states.get(name)
            if state is not None and not (state.failed or state.long_unregistered or state.late):
                self.context.backoff.succeed(name)
        for name in late:
            asked = cloud.groups.get(name)
            if asked is not None:
                patience = asked.options.max_node_provision_time
                notice = events.timed_out(name, patience)
                self.context.recorder.about_all(notice)
                self.context.fail(name, TIMEOUT, notice.text)

    async def _failed(self, asked: NodeGroupInfo, state: GroupState) -> int:
        """Instances that cannot be had."""
        if not state.failed:
            return 0
        new = [one for one in state.failed if one.provider_id not in self._counted]
        for (code, message), count in _by_error(new).items():
            notice = events.instances_failed(asked.group.id, count, code, message)
            self.context.recorder.about_all(notice)
            self.context.fail(asked.group.id, code, message)
        self._counted |= {one.provider_id for one in new}
        return len(await self._give_back(asked, state.failed, force=True))

    async def _unregistered(self, asked: NodeGroupInfo, state: GroupState) -> int:
        """Instances that never became nodes."""
        if not state.long_unregistered:
            return 0
        force = self.options.force_delete_unregistered_nodes
        given = await self._give_back(asked, state.long_unregistered, force=force)
        for provider_id in given:
            self.context.recorder.about_all(events.unregistered(provider_id, asked.group.id))
        return len(given)

    async def _give_back(
        self, asked: NodeGroupInfo, instances: Sequence[Instance], *, force: bool
    ) -> list[str]:
        """Give back as many of these as a group's minimum allows; returns those that had not been
        given back before.
        """
        spare = len(instances) if force else asked.target - asked.group.min_size
        going = [NodeRef(one.provider_id) for one in instances[: max(0, spare)]]
        if not going:
            return []
        name = asked.group.id
        try:
            await with_timeout(self.context.provider.delete_nodes(name, going))
        except NodeGroupError as error:
            log.warning("group %s: instances cannot be given back: %s", name, error)
            told = events.unregistered(going[0].provider_id, name, str(error))
            self.context.recorder.about_all(told)
            return []
        new = [one.provider_id for one in going if one.provider_id not in self._given]
        self._given.update(new)
        return new

    async def _fix_size(self, asked: NodeGroupInfo, now: datetime) -> int:
        """A group that is meant to have instances which have not come for long."""
        name = asked.group.id
        short = self.context.registry.shortfalls.get(name)
        patience = timedelta(seconds=asked.options.max_node_provision_time)
        if short is None or now < short.since + patience:
            return 0
        there = asked.target - short.missing
        self.context.recorder.about_all(events.size_fixed(name, asked.target, there))
        try:
            await with_timeout(self.context.provider.decrease_target(name, short.missing))
        except NodeGroupError as error:
            log.warning("group %s: its size cannot be fixed: %s", name, error)
            return 0
        return short.missing


def _by_error(instances: Iterable[Instance]) -> dict[tuple[str, str], int]:
    found: dict[tuple[str, str], int] = defaultdict(int)
    for one in instances:
        if one.error is not None:
            found[one.error.code or one.error.kind.value, one.error.message] += 1
    return dict(found)
