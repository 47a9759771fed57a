"""Volumes are attached, up to what a machine can attach."""

from __future__ import annotations

import pytest

from bayplan.embedded.control.view import ATTACHMENTS
from tests.embedded.simulation.virtual_clusters import CLUSTER, claim, pod, virtual_cluster

pytestmark = pytest.mark.whole


async def test_a_machine_over_its_real_limit_fails_to_attach_and_recovers() -> None:
    text = CLUSTER.replace("limit: 8", "limit: 20\n        realLimit: 3")
    async with virtual_cluster(text) as w:
        for number in range(4):
            await w.create(claim(f"c{number}"), pod(f"p{number}", claims=(f"c{number}",)))
            await w.bind(f"p{number}", "workers-1")
        await w.forward(120)
        assert w.phases() == {"Running": 3, "Pending": 1}
        stuck = next(key.name for key, one in w.view.pods.items() if one.phase == "Pending")
        told = w.events("FailedAttachVolume")
        assert {one["involvedObject"]["name"] for one in told} == {stuck}
        assert told[0]["count"] > 2
        await w.delete("pods", "p0" if stuck != "p0" else "p1")
        await w.forward(60)
        assert w.pod(stuck).phase == "Running"


async def test_a_volume_moves_only_when_its_first_node_has_let_it_go() -> None:
    # One zone, so that the volume may be used on both nodes.
    async with virtual_cluster(CLUSTER.replace("zones: [zone-a, zone-b]", "zones: [zone-a]")) as w:
        await w.create(claim("c"), pod("one", claims=("c",)))
        await w.bind("one", "workers-1")
        await w.forward(30)
        await w.create(pod("two", claims=("c",)))
        await w.bind("two", "workers-2")
        await w.forward(30)
        assert w.pod("two").phase == "Pending"
        assert "Multi-Attach" in w.events("FailedAttachVolume")[0]["message"]
        await w.delete("pods", "one")
        await w.forward(60)
        assert w.pod("two").phase == "Running"
        attached = [one["spec"]["nodeName"] for one in w.view.all(ATTACHMENTS)]
        assert attached == ["workers-2"]
