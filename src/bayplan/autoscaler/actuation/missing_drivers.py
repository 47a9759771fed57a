"""Removes nodes whose CSI drivers did not register in time.

A node is removed only if it has no pods except those of DaemonSets. It is tainted first, and
checked again after that; if it has other pods then, the taint is removed and the node kept. The
provider may also refuse, for a group at its minimum size. A node whose removal was requested, by
this leader or the one before, is not removed again unless that had no effect.

One bad node never empties its group:

- A group loses at most --csi-driver-max-removals nodes in --csi-driver-removal-interval.
- Its target size is never lowered below the number of its other nodes: where it is lowered already
  and the node is still there, the cloud has work to do, not we.
- If most nodes of a group lack a driver, the driver does not work: no node is removed, the group is
  backed off as long as that lasts, and it is reported.
- A single failure does not back the group off; several in a row, without a new node that has its
  drivers, do.

That a node had all its drivers once is written to the node, so that a restart of the autoscaler
does not take a restarting driver for a missing one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec

from bayplan.autoscaler import events
from bayplan.autoscaler.actuation.removal_ledger import RemovalLedger
from bayplan.autoscaler.actuation.scale_up import ActuationContext
from bayplan.autoscaler.cloudstate.reader import with_timeout
from bayplan.autoscaler.clusterstate.nodes import NodeStates
from bayplan.autoscaler.clusterstate.readiness import (
    DRIVERS_REGISTERED,
    NodeReadiness,
    NodeState,
)
from bayplan.autoscaler.clusterstate.registry import GroupState
from bayplan.autoscaler.clusterstate.taints import (
    TO_BE_DELETED,
    is_being_deleted,
    to_be_deleted,
    without_taint,
)
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client import Client, merge
from bayplan.client.errors import ClientError
from bayplan.kube.daemonsets import belongs_to_node
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod
from bayplan.kube.times import timestamp
from bayplan.nodegroups import NodeGroupError, NodeRef

log = logging.getLogger(__name__)
CODE = "CSI_DRIVER_MISSING"
BACKOFF_AFTER = 3
"""After how many failures in a row a group is backed off."""
MAX_ANNOTATED = 20
"""How many nodes are annotated in one loop."""


@dataclass(slots=True)
class _Failures:
    """The failures of a group since its last new node that had its drivers."""

    count: int
    last: datetime


@dataclass(slots=True)
class MissingDriverCleanup:
    """Removes nodes with missing drivers, and remembers which failures were counted."""

    context: ActuationContext
    options: AutoscalerOptions
    node_states: NodeStates
    client: Client | None
    """The client that taints and annotates nodes; None in a dry run."""
    pods_on: Callable[[str], list[Pod]]
    ledger: RemovalLedger
    _counted: set[str] = field(default_factory=set)
    _failures: dict[str, _Failures] = field(default_factory=dict)
    _broken: set[str] = field(default_factory=set)

    async def clean_up(self, now: datetime) -> int:
        """Remove nodes with missing drivers; return how many were removed."""
        await self._annotate(now)
        by_group: dict[str, list[NodeState]] = {}
        for name in self.node_states.in_state(NodeReadiness.MISSING_DRIVERS):
            member = self.node_states.members[name]
            if member.group:
                by_group.setdefault(member.group, []).append(member)
        self._recover(by_group.keys())
        removed = 0
        for group, members in sorted(by_group.items()):
            self._record_failures(group, members, now)
            if not self._is_broken(group, members):
                removed += await self._remove_some(group, members, now)
        listed = {one.node.metadata.uid for members in by_group.values() for one in members}
        self._counted &= listed
        return removed

    # -- failures ------------------------------------------------------------------------------

    def _record_failures(self, group: str, members: Sequence[NodeState], now: datetime) -> None:
        timeout = self.options.csi_driver_startup_time
        for member in members:
            uid, name = member.node.metadata.uid, member.node.name
            notice = events.drivers_missing(name, group, member.missing, timeout)
            self.context.recorder.about(member.node, notice)
            if uid not in self._counted:
                self._counted.add(uid)
                self.context.recorder.about_all(notice)
                self._count_failure(group, notice.text, now)

    def _count_failure(self, group: str, text: str, now: datetime) -> None:
        """Count a failure; back the group off after several in a row."""
        known = self._failures.get(group)
        if known is None or self._has_newer(group, known.last):
            known = self._failures[group] = _Failures(0, now)
        known.count, known.last = known.count + 1, now
        if known.count >= BACKOFF_AFTER:
            self.context.fail(group, CODE, text)
        else:
            self.context.metrics.failed.labels(CODE).inc()

    def _has_newer(self, group: str, since: datetime) -> bool:
        """Whether a node of the group became ready, with its drivers, after that."""
        return any(
            one.readiness is NodeReadiness.READY and one.ready_since and one.ready_since > since
            for _, one in self.node_states.of_group(group)
        )

    def _is_broken(self, group: str, members: Sequence[NodeState]) -> bool:
        """Whether most nodes of a group lack a driver; then it is reported and backed off."""
        state = self.context.registry.states.get(group, GroupState())
        if not is_driver_broken(state.ready, len(members)):
            return False
        drivers = sorted({driver for one in members for driver in one.missing})
        known = state.ready + len(members)
        notice = events.driver_broken(group, drivers, len(members), known)
        self.context.recorder.about_all(notice)
        self.context.backoff.back_off(group, self.context.clock.now(), CODE, notice.text)
        self._broken.add(group)
        return True

    def _recover(self, missing: Iterable[str]) -> None:
        """End the backoff of groups whose driver works again."""
        for group in self._broken - set(missing):
            self.context.backoff.remove_backoff(group)
            self._broken.discard(group)

    # -- removal -------------------------------------------------------------------------------

    async def _remove_some(self, group: str, members: Sequence[NodeState], now: datetime) -> int:
        """Remove as many nodes of a group as it may lose now."""
        removed = 0
        for member in members:
            if not self._may_lower(group, removed):
                break
            if self._is_used(member.node.name):
                continue
            try:
                if await self._is_requested(member.node, group, now):
                    continue
                if await self.ledger.count(group, now) >= self.options.csi_driver_max_removals:
                    break
                removed += await self._remove(member.node, group, now)
            except (ClientError, NodeGroupError) as error:
                log.warning("node %s cannot be removed: %s", member.node.name, error)
        return removed

    def _may_lower(self, group: str, removed: int) -> bool:
        """Whether the target size is above the number of nodes with all their drivers."""
        state = self.context.registry.states.get(group, GroupState())
        return state.target - removed > state.registered - len(state.missing_drivers)

    async def _is_requested(self, node: Node, group: str, now: datetime) -> bool:
        """Whether the node's removal was requested, by this leader or one before.

        It is requested again only if the cloud has had time, and did not lower the target size.
        """
        requested = await self.ledger.requested_at(group, node.metadata.uid)
        if requested is None:
            return is_being_deleted(node, now)
        state = self.context.registry.states.get(group, GroupState())
        timeout = timedelta(seconds=self.options.max_node_provision_time)
        return now < requested + timeout or state.target < state.registered

    async def _remove(self, node: Node, group: str, now: datetime) -> int:
        await self.ledger.record(group, node.metadata.uid, now)
        tainted = await self._taint(node, [*_others(node), to_be_deleted(now)])
        if self._is_used(node.name):
            await self._taint(tainted, _others(node))
            return 0
        await self._delete(tainted, group)
        return 1

    async def _delete(self, node: Node, group: str) -> None:
        try:
            await with_timeout(self.context.provider.delete_nodes(group, [NodeRef.of(node)]))
        except NodeGroupError:
            await self._taint(node, _others(node))
            raise
        log.info("removed node", extra={"node": node.name, "group": group, "reason": CODE})

    async def _taint(self, node: Node, taints: list[Taint]) -> Node:
        return await self._patch(node, {"spec": {"taints": msgspec.to_builtins(taints)}})

    def _is_used(self, name: str) -> bool:
        return any(not belongs_to_node(pod) for pod in self.pods_on(name))

    # -- what was once complete ----------------------------------------------------------------

    async def _annotate(self, now: datetime) -> None:
        """Annotate young nodes whose drivers have all registered; older ones are never late."""
        if self.client is None:
            return
        for node in self.node_states.newly_complete(MAX_ANNOTATED):
            change = {"metadata": {"annotations": {DRIVERS_REGISTERED: timestamp(now)}}}
            try:
                await self._patch(node, change)
            except ClientError as error:
                log.warning("node %s cannot be annotated: %s", node.name, error)
                self.node_states.annotate_later(node.name)

    async def _patch(self, node: Node, change: Mapping[str, Mapping[str, object]]) -> Node:
        if self.client is None:
            return node
        meta = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        whole = {**change, "metadata": {**change.get("metadata", {}), **meta}}
        return await self.client.patch(Node, node.name, change=merge(whole))


def is_driver_broken(ready: int, missing: int) -> bool:
    """Whether most of several nodes of a group lack a driver."""
    return missing > 1 and missing > ready


def _others(node: Node) -> list[Taint]:
    return without_taint(node.spec.taints, TO_BE_DELETED)
