"""Claims, volumes and attachments."""

from __future__ import annotations

from tests.simulation.worlds import claim, pod, world


async def test_a_claim_waits_until_its_pod_is_bound_by_hand() -> None:
    async with world() as w:
        await w.create(claim("data"), pod("p", claims=("data",)))
        await w.forward(60)
        assert w.claim_phase("data") == "Pending"
        await w.bind("p", "workers-1")
        await w.forward(30)
        assert w.claim_phase("data") == "Bound"
        assert w.pod("p").phase == "Running"
