"""Taints and cordons of nodes that are removed, written and taken off again.

A node that no one is deleting must not keep the taint of one that is: after a restart, or where the
taint could not be taken off when its deletion failed. It is taken off at the beginning, and later
once it is too old, unless the cloud says that the node is going. Nodes that are not needed get a
taint that asks schedulers to spare them; so many in one loop, and for so long.

A node is read just before it is written, as it is and with all its taints, and the write is refused
if it is another node of that name or has changed since; then it is read again. Whether a cordon is
ours stands in an annotation, so that a node that somebody else had cordoned stays so, also after a
restart.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Container, Mapping
from typing import cast

import msgspec

from bayplan.autoscaler.clusterstate.taints import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    deletion_candidate,
    has_taint,
    is_being_deleted,
)
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.client import Client, Untyped, merge, untyped_kind
from bayplan.client.errors import ClientError, ConflictError, NotFoundError
from bayplan.kube.nodes import Node, Taint
from bayplan.nodegroups import InstanceState

NODES = untyped_kind("Node")
CORDONED = "bayplan.io/cordoned-for-deletion"
"""Of a node: the cordon is the autoscaler's own."""
ATTEMPTS = 5
PAUSE = 0.75
"""Seconds between tries to write to a node that somebody else writes to as well."""
Change = Callable[[Mapping[str, object], Mapping[str, object]], Untyped | None]
"""What to change, given a node's metadata and spec; None if nothing."""


class AnotherNodeError(ClientError):
    """The node is gone, and another one has its name."""


class NodeWriter:
    """Writes through a client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def mark(self, node: Node, taint: Taint, *, cordon: bool) -> None:
        """Taint a node that is to be deleted, and cordon it; NotFoundError if it is gone."""

        def change(_meta: Mapping[str, object], spec: Mapping[str, object]) -> Untyped:
            taints = [*_without(spec, TO_BE_DELETED), msgspec.to_builtins(taint)]
            if not cordon or spec.get("unschedulable"):
                return {"spec": {"taints": taints}}
            noted = {"annotations": {CORDONED: "true"}}
            return {"metadata": noted, "spec": {"taints": taints, "unschedulable": True}}

        await self._write(node, change)

    async def unmark(self, node: Node) -> None:
        """Take the taint and our cordon off a node that stays; one that is gone needs nothing."""

        def change(meta: Mapping[str, object], spec: Mapping[str, object]) -> Untyped | None:
            found: Untyped = {}
            taints = _without(spec, TO_BE_DELETED)
            if taints != spec.get("taints", []):
                found["spec"] = {"taints": taints or None}
            if CORDONED in cast("dict[str, str]", meta.get("annotations") or {}):
                found["metadata"] = {"annotations": {CORDONED: None}}
                found["spec"] = {"taints": taints or None, "unschedulable": None}
            return found or None

        await self._write_if_there(node, change)

    async def ask_to_spare(self, node: Node, taint: Taint) -> None:
        """Taint a node that is not needed."""

        def change(_meta: Mapping[str, object], spec: Mapping[str, object]) -> Untyped:
            taints = [*_without(spec, DELETION_CANDIDATE), msgspec.to_builtins(taint)]
            return {"spec": {"taints": taints}}

        await self._write_if_there(node, change)

    async def stop_sparing(self, node: Node) -> None:
        """Take that taint off a node that is needed."""

        def change(_meta: Mapping[str, object], spec: Mapping[str, object]) -> Untyped | None:
            taints = _without(spec, DELETION_CANDIDATE)
            same = taints == spec.get("taints", [])
            return None if same else {"spec": {"taints": taints or None}}

        await self._write_if_there(node, change)

    async def _write_if_there(self, node: Node, change: Change) -> None:
        try:
            await self._write(node, change)
        except (NotFoundError, AnotherNodeError):
            return

    async def _write(self, node: Node, change: Change) -> None:
        for attempt in range(ATTEMPTS):
            found = await self._client.get(NODES, node.name)
            meta = cast("dict[str, object]", found["metadata"])
            if meta.get("uid") != node.metadata.uid:
                raise AnotherNodeError(f"another node has the name {node.name}")
            wanted = change(meta, cast("dict[str, object]", found.get("spec") or {}))
            if wanted is None:
                return
            guard = {"uid": node.metadata.uid, "resourceVersion": meta["resourceVersion"]}
            more = cast("dict[str, object]", wanted.get("metadata", {}))
            patch = merge({**wanted, "metadata": {**more, **guard}})
            try:
                await self._client.patch(NODES, node.name, change=patch)
            except ConflictError:
                if attempt + 1 == ATTEMPTS:
                    raise
                await self._client.clock.sleep(PAUSE)
            else:
                return


def _without(spec: Mapping[str, object], key: str) -> list[object]:
    taints = cast("list[dict[str, object]]", spec.get("taints") or [])
    return [taint for taint in taints if taint.get("key") != key]


log = logging.getLogger(__name__)


class TaintCleaner:
    """Keeps taints true."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._nodes = NodeWriter(client)
        self._began = False

    async def clean(self, cluster_view: ClusterView, deleting: Container[str]) -> int:
        """Take taints off nodes that nobody is deleting; returns how many."""
        found = [one for one in _tainted(cluster_view, TO_BE_DELETED) if one.name not in deleting]
        going = _going(cluster_view) if found else set()
        cleaned = 0
        for node in found:
            young = self._began and is_being_deleted(node, cluster_view.now)
            if not young and node.spec.provider_id not in going:
                cleaned += await self._done(self._nodes.unmark(node), node)
        self._began = True
        return cleaned

    async def soften(self, cluster_view: ClusterView, unneeded: Collection[str]) -> None:
        """Let the right nodes have the taint that asks to spare them."""
        clock, options = self._client.clock, cluster_view.options
        left = options.max_bulk_soft_taint_count
        ends = clock.monotonic() + options.max_bulk_soft_taint_time
        taint = deletion_candidate(cluster_view.now)
        for node, wanted in _misjudged(cluster_view, unneeded if left > 0 else ()):
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


def _tainted(cluster_view: ClusterView, key: str) -> list[Node]:
    """The nodes of groups that have a taint of this key."""
    tainted = (node for node in cluster_view.snapshot.cluster.nodes if node and node.spec.taints)
    return [node for node in tainted if has_taint(node, key) and node.name in cluster_view.group_of]


def _misjudged(cluster_view: ClusterView, unneeded: Collection[str]) -> list[tuple[Node, bool]]:
    """Nodes that have the soft taint and should not, and then those that should and have not."""
    named = cluster_view.snapshot.cluster.node_named
    marked = _tainted(cluster_view, DELETION_CANDIDATE)
    lose = [(node, False) for node in marked if node.name not in unneeded]
    spare = [node for node in map(named, unneeded) if node and node.name in cluster_view.group_of]
    get = [(node, True) for node in spare if not has_taint(node, DELETION_CANDIDATE)]
    return [one for one in lose + get if not has_taint(one[0], TO_BE_DELETED)]


def _going(cluster_view: ClusterView) -> set[str]:
    """What the cloud is deleting, by provider ID."""
    return {
        one.provider_id
        for view in cluster_view.groups.values()
        for one in view.instances
        if one.state is InstanceState.DELETING
    }
