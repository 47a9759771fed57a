"""Ephemeral volumes."""

from __future__ import annotations

import pytest

from bayplan.embedded.control.view import CLAIMS
from tests.embedded.simulation.virtual_clusters import claim, pod, virtual_cluster

pytestmark = pytest.mark.whole


async def test_an_ephemeral_volume_comes_and_goes_with_its_pod() -> None:
    template = {"spec": claim("x")["spec"]}
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    async with virtual_cluster() as w:
        await w.create(pod("p", volumes=[volume]))
        await w.bind("p", "workers-1")
        await w.forward(30)
        assert w.claim_phase("p-scratch") == "Bound"
        assert w.pod("p").phase == "Running"
        await w.delete("pods", "p")
        await w.forward(30)
        assert w.get(CLAIMS, "p-scratch") is None
