"""Nodes whose drivers never came: told of, counted as a failure of their group, and removed.

A node goes only if nothing but daemons is on it. It is tainted first, so that nothing more comes,
and looked at again after that; if something has come meanwhile, it keeps its taint no longer and
stays. A group that is at its minimum keeps the node as well, if its cloud says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from bayplan.autoscaler.acting import Desk
from bayplan.autoscaler.cloud.calling import patiently
from bayplan.autoscaler.cluster.fleet import Fleet
from bayplan.autoscaler.cluster.standing import Standing
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown.taints import TO_BE_DELETED, to_be_deleted, without_taint
from bayplan.autoscaler.telling import messages
from bayplan.client import Client, merge
from bayplan.client.errors import ClientError
from bayplan.kube.daemons import belongs_to_node
from bayplan.kube.nodes import Node, Taint
from bayplan.kube.pods import Pod
from bayplan.nodegroups import NodeGroupError, NodeRef

log = logging.getLogger(__name__)
CODE = "CSI_DRIVER_MISSING"


@dataclass(slots=True)
class GivingUp:
    """Gives nodes up, and remembers whose failure has been counted."""

    desk: Desk
    options: AutoscalerOptions
    fleet: Fleet
    client: Client | None
    """Whom nodes are tainted by; nobody in a dry run."""
    pods_on: Callable[[str], list[Pod]]
    _counted: set[str] = field(default_factory=set)

    async def give_up(self, now: datetime) -> int:
        """Give up whatever is late; returns how many nodes were given back."""
        given = 0
        late = self.fleet.standing(Standing.LATE)
        uids = {self.fleet.members[name].node.metadata.uid for name in late}
        for name in late:
            member = self.fleet.members.get(name)
            if member is not None and member.group:
                self._tell(name)
                given += await self._remove(member.node, member.group, now)
        self._counted &= uids
        return given

    def _tell(self, name: str) -> None:
        member = self.fleet.members[name]
        uid, patience = member.node.metadata.uid, self.options.csi_driver_startup_time
        notice = messages.drivers_missing(name, member.group, member.missing, patience)
        self.desk.teller.about(member.node, notice)
        if uid not in self._counted:
            self._counted.add(uid)
            self.desk.teller.about_all(notice)
            self.desk.fail(member.group, CODE, notice.text)

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
            await patiently(self.desk.provider.delete_nodes(group, [NodeRef.of(node)]))
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
