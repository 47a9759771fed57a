"""Taints that are no longer true, and those that say which nodes are not needed.

A node that nobody is deleting must not keep the taint of one that is: after a restart, or where the
taint could not be taken off when its deletion failed. It is taken off at the beginning, and later
once it is too old, unless the cloud says that the node is going. Nodes that are not needed get a
taint that asks schedulers to spare them; so many in one loop, and for so long.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Collection, Container

from bayplan.autoscaler.scaledown.actuation.nodes import NodeWrites
from bayplan.autoscaler.scaledown.taints import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    deletion_candidate,
    has_taint,
    is_being_deleted,
)
from bayplan.autoscaler.world import World
from bayplan.client import Client
from bayplan.client.errors import ClientError
from bayplan.kube.nodes import Node
from bayplan.nodegroups import InstanceState

log = logging.getLogger(__name__)


class Tending:
    """Keeps taints true."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._nodes = NodeWrites(client)
        self._began = False

    async def clean(self, world: World, deleting: Container[str]) -> int:
        """Take taints off nodes that nobody is deleting; returns how many."""
        found = [one for one in _tainted(world, TO_BE_DELETED) if one.name not in deleting]
        going = _going(world) if found else set()
        cleaned = 0
        for node in found:
            young = self._began and is_being_deleted(node, world.now)
            if not young and node.spec.provider_id not in going:
                cleaned += await self._done(self._nodes.unmark(node), node)
        self._began = True
        return cleaned

    async def soften(self, world: World, unneeded: Collection[str]) -> None:
        """Let the right nodes have the taint that asks to spare them."""
        clock, options = self._client.clock, world.options
        left = options.max_bulk_soft_taint_count
        ends = clock.monotonic() + options.max_bulk_soft_taint_time
        taint = deletion_candidate(world.now)
        for node, wanted in _misjudged(world, unneeded if left > 0 else ()):
            if options.max_bulk_soft_taint_count > 0 and (left < 1 or clock.monotonic() >= ends):
                return
            left -= 1
            if wanted:
                await self._done(self._nodes.ask_to_spare(node, taint), node)
            else:
                await self._done(self._nodes.stop_sparing(node), node)

    async def _done(self, write: Awaitable[None], node: Node) -> int:
        try:
            await write
        except ClientError as error:
            log.warning("the taints of node %s cannot be written: %s", node.name, error)
            return 0
        return 1


def _tainted(world: World, key: str) -> list[Node]:
    """The nodes of groups that have a taint of this key."""
    tainted = (node for node in world.snapshot.cluster.nodes if node and node.spec.taints)
    return [node for node in tainted if has_taint(node, key) and node.name in world.group_of]


def _misjudged(world: World, unneeded: Collection[str]) -> list[tuple[Node, bool]]:
    """Nodes that have the soft taint and should not, and then those that should and have not."""
    named = world.snapshot.cluster.node_named
    marked = _tainted(world, DELETION_CANDIDATE)
    lose = [(node, False) for node in marked if node.name not in unneeded]
    spare = [node for node in map(named, unneeded) if node and node.name in world.group_of]
    get = [(node, True) for node in spare if not has_taint(node, DELETION_CANDIDATE)]
    return [one for one in lose + get if not has_taint(one[0], TO_BE_DELETED)]


def _going(world: World) -> set[str]:
    """What the cloud is deleting, by provider ID."""
    return {
        one.provider_id
        for view in world.groups.values()
        for one in view.instances
        if one.state is InstanceState.DELETING
    }
