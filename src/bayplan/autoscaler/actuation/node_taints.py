"""Sets and removes taints and cordons of nodes that are removed.

A node that is not being deleted must not keep the ToBeDeleted taint: after a restart, or where it
could not be removed when the deletion failed. It is removed in the first loop, and later once it is
too old, unless the provider is deleting the instance. Unneeded nodes get the soft taint
DeletionCandidate; a limited number in one loop.

A node is read just before it is patched, and the patch is refused if the node was replaced or has
changed since; then it is read again. An annotation marks the autoscaler's own cordon, so that a
node that others cordoned stays cordoned, also after a restart.
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
"""Annotation of a node that the autoscaler has cordoned."""
ATTEMPTS = 5
PAUSE = 0.75
"""Seconds between attempts after a conflict."""
Change = Callable[[Mapping[str, object], Mapping[str, object]], Untyped | None]
"""Returns the patch for a node's metadata and spec; None if there is nothing to change."""


class AnotherNodeError(ClientError):
    """The node was replaced by another of the same name."""


class NodeWriter:
    """Patches taints and cordons of nodes."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def taint_for_deletion(self, node: Node, taint: Taint, *, cordon: bool) -> None:
        """Taint and cordon a node before its deletion; NotFoundError if it does not exist."""

        def change(_meta: Mapping[str, object], spec: Mapping[str, object]) -> Untyped:
            taints = [*_without(spec, TO_BE_DELETED), msgspec.to_builtins(taint)]
            if not cordon or spec.get("unschedulable"):
                return {"spec": {"taints": taints}}
            noted = {"annotations": {CORDONED: "true"}}
            return {"metadata": noted, "spec": {"taints": taints, "unschedulable": True}}

        await self._write(node, change)

    async def remove_deletion_taint(self, node: Node) -> None:
        """Remove the ToBeDeleted taint and the autoscaler's cordon, if the node exists."""

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

    async def add_soft_taint(self, node: Node, taint: Taint) -> None:
        """Set the soft taint of an unneeded node."""

        def change(_meta: Mapping[str, object], spec: Mapping[str, object]) -> Untyped:
            taints = [*_without(spec, DELETION_CANDIDATE), msgspec.to_builtins(taint)]
            return {"spec": {"taints": taints}}

        await self._write_if_there(node, change)

    async def remove_soft_taint(self, node: Node) -> None:
        """Remove the soft taint of a node that is needed."""

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
                raise AnotherNodeError(f"node {node.name} was replaced by another of its name")
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
    """Removes stale taints, and updates soft taints."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._nodes = NodeWriter(client)
        self._has_run = False

    async def clean(self, cluster_view: ClusterView, deleting: Container[str]) -> int:
        """Remove the taint of nodes that are not being deleted; return how many."""
        found = [one for one in _tainted(cluster_view, TO_BE_DELETED) if one.name not in deleting]
        being_deleted = _being_deleted(cluster_view) if found else set()
        cleaned = 0
        for node in found:
            young = self._has_run and is_being_deleted(node, cluster_view.now)
            if not young and node.spec.provider_id not in being_deleted:
                cleaned += await self._try_write(self._nodes.remove_deletion_taint(node), node)
        self._has_run = True
        return cleaned

    async def update_soft_taints(
        self, cluster_view: ClusterView, unneeded: Collection[str]
    ) -> None:
        """Set the soft taint on unneeded nodes, and remove it from others."""
        clock, options = self._client.clock, cluster_view.options
        left = options.max_bulk_soft_taint_count
        ends = clock.monotonic() + options.max_bulk_soft_taint_time
        taint = deletion_candidate(cluster_view.now)
        for node, wanted in _wrong_soft_taints(cluster_view, unneeded if left > 0 else ()):
            if options.max_bulk_soft_taint_count > 0 and (left < 1 or clock.monotonic() >= ends):
                return
            left -= 1
            if wanted:
                await self._try_write(self._nodes.add_soft_taint(node, taint), node)
            else:
                await self._try_write(self._nodes.remove_soft_taint(node), node)

    async def _try_write(self, write: Awaitable[None], node: Node) -> int:
        try:
            await write
        except ClientError as error:
            log.warning("the taints of node %s cannot be written: %s", node.name, error)
            return 0
        return 1


def _tainted(cluster_view: ClusterView, key: str) -> list[Node]:
    """Return the nodes of groups that have a taint with this key."""
    tainted = (node for node in cluster_view.snapshot.cluster.nodes if node and node.spec.taints)
    return [node for node in tainted if has_taint(node, key) and node.name in cluster_view.group_of]


def _wrong_soft_taints(
    cluster_view: ClusterView, unneeded: Collection[str]
) -> list[tuple[Node, bool]]:
    """Nodes that have the soft taint and should not, and then those that should and have not."""
    named = cluster_view.snapshot.cluster.node_named
    marked = _tainted(cluster_view, DELETION_CANDIDATE)
    lose = [(node, False) for node in marked if node.name not in unneeded]
    spare = [node for node in map(named, unneeded) if node and node.name in cluster_view.group_of]
    get = [(node, True) for node in spare if not has_taint(node, DELETION_CANDIDATE)]
    return [one for one in lose + get if not has_taint(one[0], TO_BE_DELETED)]


def _being_deleted(cluster_view: ClusterView) -> set[str]:
    """Return the provider IDs of the instances that the cloud is deleting."""
    return {
        one.provider_id
        for view in cluster_view.groups.values()
        for one in view.instances
        if one.state is InstanceState.DELETING
    }
