"""The provider of a simulated cluster in virtual time."""

from __future__ import annotations

import pytest

from bayplan.embedded.control.view import NODES
from bayplan.kube.codec import KINDS, decode_as
from bayplan.kube.nodes import Node
from bayplan.nodegroups import NodeRef
from tests.embedded.simulation.virtual_clusters import virtual_cluster

pytestmark = pytest.mark.whole


@pytest.mark.virtual
async def test_a_provider_in_process_buys_and_gives_back_in_virtual_time() -> None:
    async with virtual_cluster() as w:
        provider = w.simulation.provider
        await provider.increase("workers", 1)
        await w.forward(60)
        node = decode_as(KINDS["Node"], w.get(NODES, "workers-3"))
        assert isinstance(node, Node)
        group = await provider.group_for_node(NodeRef.of(node))
        assert group is not None
        await provider.delete_nodes(group.id, [NodeRef.of(node)])
        await w.forward(1)
        assert w.get(NODES, "workers-3") is None
