"""Writing to nodes: the taints and the cordon of those on their way out, and taking both back.

A node is read just before it is written, as it is and with all its taints, and the write is refused
if it is another node of that name or has changed since; then it is read again. Whether a cordon is
ours stands in an annotation, so that a node that somebody else had cordoned stays so, also after a
restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import cast

import msgspec

from bayplan.autoscaler.scaledown.taints import DELETION_CANDIDATE, TO_BE_DELETED
from bayplan.client import Client, Untyped, merge, untyped
from bayplan.client.errors import ClientError, ConflictError, NotFoundError
from bayplan.kube.nodes import Node, Taint

NODES = untyped("", "v1", "nodes", "Node", namespaced=False)
CORDONED = "bayplan.io/cordoned-for-deletion"
"""Of a node: the cordon is the autoscaler's own."""
ATTEMPTS = 5
PAUSE = 0.75
"""Seconds between tries to write to a node that somebody else writes to as well."""
Change = Callable[[Mapping[str, object], Mapping[str, object]], Untyped | None]
"""What to change, given a node's metadata and spec; None if nothing."""


class AnotherNodeError(ClientError):
    """The node is gone, and another one has its name."""


class NodeWrites:
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
