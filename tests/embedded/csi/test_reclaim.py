"""Deleted claims and their volumes."""

from __future__ import annotations

import pytest

from bayplan.embedded.control.view import ATTACHMENTS, CLAIMS, VOLUMES
from tests.embedded.csi.volumes import volume_by_hand
from tests.embedded.simulation.virtual_clusters import claim, pod, virtual_cluster

pytestmark = pytest.mark.whole


async def test_a_deleted_claim_takes_its_volume_along_once_it_is_detached() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.bind("p", "workers-1")
        await w.forward(30)
        assert len(w.view.all(VOLUMES)) == 1
        await w.delete("pods", "p")
        await w.delete(CLAIMS, "c")
        await w.forward(30)
        assert w.view.all(VOLUMES) == []
        assert w.view.all(ATTACHMENTS) == []


async def test_a_deleted_claim_stays_while_a_pod_on_a_node_uses_it() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.bind("p", "workers-1")
        await w.forward(30)
        await w.delete(CLAIMS, "c")
        await w.forward(600)
        assert w.get(CLAIMS, "c")["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert w.view.all(VOLUMES)[0]["status"]["phase"] == "Bound"
        await w.delete("pods", "p")
        await w.forward(60)
        assert w.view.all(CLAIMS) == []
        assert w.view.all(VOLUMES) == []


async def test_a_deleted_claim_that_no_pod_uses_goes_at_once() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.delete(CLAIMS, "c")
        await w.forward(1)
        assert w.view.all(CLAIMS) == []


async def test_a_deleted_volume_stays_while_it_is_bound() -> None:
    async with virtual_cluster() as w:
        await w.create(claim("c"), pod("p", claims=("c",)))
        await w.bind("p", "workers-1")
        await w.forward(30)
        name = w.view.all(VOLUMES)[0]["metadata"]["name"]
        await w.delete(VOLUMES, name)
        await w.forward(600)
        assert w.get(VOLUMES, name)["status"]["phase"] == "Bound"
        await w.delete("pods", "p")
        await w.delete(CLAIMS, "c")
        await w.forward(60)
        assert w.view.all(VOLUMES) == []


async def test_a_retained_volume_is_released_and_serves_nobody_else() -> None:
    async with virtual_cluster() as w:
        await w.create(volume_by_hand("v"), claim("a", "by-hand"))
        await w.forward(5)
        await w.delete(CLAIMS, "a")
        await w.create(claim("b", "by-hand"))
        await w.forward(5)
        assert w.get(VOLUMES, "v")["status"]["phase"] == "Released"
        assert w.claim_phase("b") == "Pending"
