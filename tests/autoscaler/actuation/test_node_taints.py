"""What is written to nodes and pods on their way out, to the embedded API server or a real one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from bayplan.autoscaler.actuation.drain import pods_on
from bayplan.autoscaler.actuation.node_taints import CORDONED, AnotherNodeError, NodeWriter
from bayplan.autoscaler.clusterstate.taints import (
    DELETION_CANDIDATE,
    TO_BE_DELETED,
    deletion_candidate,
    to_be_deleted,
)
from bayplan.client import Client, merge, untyped
from bayplan.client.errors import ConflictError, NotFoundError
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from tests.scheduler.running_scheduler import node, pod

NODES = untyped("", "v1", "nodes", "Node", namespaced=False)
NAME = "bayplan-going"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OTHER = {
    "key": "example.com/other",
    "effect": "NoExecute",
    "timeAdded": "2025-12-31T00:00:00Z",
}


async def made(client: Client) -> Node:
    """A node with a taint of somebody else's."""
    await client.create(node(NAME))
    return await client.patch(Node, NAME, change=merge({"spec": {"taints": [OTHER]}}))


async def spec(client: Client) -> dict[str, object]:
    found = (await client.get(NODES, NAME))["spec"]
    assert isinstance(found, dict)
    return found


async def keys(client: Client) -> list[str]:
    return [taint.key for taint in (await client.get(Node, NAME)).spec.taints]


async def test_a_node_is_marked_and_unmarked_and_nobody_elses_taint_is_touched(
    client: Client,
) -> None:
    found, writes = await made(client), NodeWriter(client)
    await writes.taint_for_deletion(found, to_be_deleted(NOW), cordon=True)
    assert await keys(client) == [OTHER["key"], TO_BE_DELETED]
    marked = await client.get(Node, NAME)
    assert marked.spec.unschedulable
    assert CORDONED in marked.metadata.annotations
    await writes.remove_deletion_taint(found)
    assert await keys(client) == [OTHER["key"]]
    unmarked = await client.get(Node, NAME)
    assert not unmarked.spec.unschedulable
    assert CORDONED not in unmarked.metadata.annotations
    assert (await spec(client))["taints"] == [OTHER]


async def test_soft_taints_come_and_go(client: Client) -> None:
    found, writes = await made(client), NodeWriter(client)
    await writes.add_soft_taint(found, deletion_candidate(NOW))
    assert await keys(client) == [OTHER["key"], DELETION_CANDIDATE]
    await writes.remove_soft_taint(found)
    await writes.remove_soft_taint(found)
    assert await keys(client) == [OTHER["key"]]


async def test_another_node_of_the_name_is_left_alone(client: Client) -> None:
    found, writes = await made(client), NodeWriter(client)
    elder = replace(found, metadata=replace(found.metadata, uid="of-the-one-before"))
    with pytest.raises(AnotherNodeError):
        await writes.taint_for_deletion(elder, to_be_deleted(NOW), cordon=True)
    await writes.add_soft_taint(elder, deletion_candidate(NOW))
    assert await keys(client) == [OTHER["key"]]


async def test_a_node_that_is_gone_needs_nothing_taken_off(client: Client) -> None:
    found, writes = await made(client), NodeWriter(client)
    await client.delete(Node, NAME)
    await writes.remove_deletion_taint(found)
    with pytest.raises(NotFoundError):
        await writes.taint_for_deletion(found, to_be_deleted(NOW), cordon=False)


async def test_a_pod_is_evicted_only_if_it_is_the_one_that_was_meant(
    client: Client, namespace: str
) -> None:
    await made(client)
    await client.create(pod(namespace, "p", nodeName=NAME))
    (found,) = await pods_on(client, NAME)
    with pytest.raises(ConflictError):
        await client.evict(namespace, "p", grace=0, uid="of-the-one-before")
    assert not (await client.get(Pod, namespace, "p")).is_terminating
    await client.evict(namespace, "p", grace=0, uid=found.metadata.uid)
    with pytest.raises(NotFoundError):
        await client.get(Pod, namespace, "p")
