"""Stories 1, 3, 4 and 8 with our scheduler, in virtual time and over HTTPS and gRPC.

What takes minutes in a cluster file takes seconds where the wall's clock is waited for.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.lab import VirtualLab
from bayplan.scheduler.skew import knows_the_gate
from tests.autoscaler.running_autoscaler import (
    RunningCluster,
    all_run,
    live_running_cluster,
    story,
    virtual_running_cluster,
)

pytestmark = pytest.mark.whole


FAST = AutoscalerOptions(scan_interval=0.3, initial_node_group_backoff_duration=1.0)
IMPATIENT = replace(FAST, csi_driver_startup_time=4.0)
OFF = Profile(gates=FeatureGates({"VolumeLimitScaling": False}))
SOON = ("instanceType: large", "instanceType: large\n    start: 0.5")
AT_ONCE = ("limit: 8", "limit: 8, delay: 0.5")
DISK = "disk.csi.example.com"
ON_ALL = ("node: workers-1}", "at: 0s, for: 20m}")
"""Twenty minutes in which no node gets its driver, not only the first."""


async def attach_limit_reached(cluster: RunningCluster) -> None:
    await cluster.until(all_run(36))
    assert await cluster.nodes() == [f"workers-{n}" for n in range(1, 6)]
    assert (cluster.most, len(cluster.created_instances)) == (5, 5)
    notes = "pod triggered scale-up: [{workers 2->5 (max: 10)}]"
    assert await cluster.event_notes("TriggeredScaleUp") == [notes] * 20
    assert not await cluster.event_notes("NotTriggerScaleUp")


@pytest.mark.virtual
async def test_attach_limit_reached_in_virtual_time() -> None:
    async with virtual_running_cluster(story("1-attach-limit-reached")) as cluster:
        await attach_limit_reached(cluster)


async def test_attach_limit_reached_over_https(tmp_path: Path) -> None:
    spec = story("1-attach-limit-reached", SOON, AT_ONCE, ("at: 5m", "at: 6s"))
    async with live_running_cluster(spec, tmp_path, FAST) as cluster:
        await attach_limit_reached(cluster)


async def from_zero(cluster: RunningCluster) -> None:
    await cluster.until(all_run(20))
    assert await cluster.nodes() == ["workers-1", "workers-2", "workers-3"]
    assert len(cluster.created_instances) == 3


@pytest.mark.virtual
async def test_from_zero_in_virtual_time() -> None:
    async with virtual_running_cluster(story("3-from-zero")) as cluster:
        await from_zero(cluster)


async def test_from_zero_over_https(tmp_path: Path) -> None:
    spec = story("3-from-zero", ("start: 45s", "start: 0.5"), ("delay: 15s", "delay: 0.5"))
    async with live_running_cluster(spec, tmp_path, FAST) as cluster:
        await from_zero(cluster)


async def the_driver_that_never_came(cluster: RunningCluster) -> None:
    """Three nodes are added and no more; the first never gets its driver, and is replaced."""
    await cluster.until(all_run(20))
    assert cluster.most == 3
    assert cluster.created_instances == {f"workers-{n}" for n in range(1, 5)}
    assert await cluster.nodes() == ["workers-2", "workers-3", "workers-4"]
    notes = await cluster.event_notes("CSIDriverMissing")
    assert any(f"has not reported CSI driver {DISK}" in text for text in notes)
    assert not any("in backoff" in text for text in await cluster.event_notes("NotTriggerScaleUp"))


@pytest.mark.virtual
async def test_the_driver_that_never_came_in_virtual_time() -> None:
    async with virtual_running_cluster(story("4-the-driver-that-never-came")) as cluster:
        await the_driver_that_never_came(cluster)


async def test_the_driver_that_never_came_over_https(tmp_path: Path) -> None:
    spec = story("4-the-driver-that-never-came", SOON, AT_ONCE)
    async with live_running_cluster(spec, tmp_path, IMPATIENT) as cluster:
        await the_driver_that_never_came(cluster)


@pytest.mark.virtual
async def test_nodes_stay_while_the_driver_works_on_none_of_them() -> None:
    """Drivers come after twenty minutes: until then at most one node is replaced."""
    async with virtual_running_cluster(story("4-the-driver-that-never-came", ON_ALL)) as cluster:
        await cluster.until(all_run(20))
        assert cluster.most == 3
        assert len(cluster.created_instances) <= 4
        assert {"workers-2", "workers-3"} <= set(await cluster.nodes())
        (note,) = set(await cluster.event_notes("CSIDriverBroken"))
        assert note.endswith("no node is removed, and the group is not scaled up")
        assert any("in backoff" in text for text in await cluster.event_notes("NotTriggerScaleUp"))


async def everything_on(cluster: RunningCluster) -> None:
    """One more node with the driver is bought, and the late driver is waited for: all run."""
    await cluster.until(all_run(20))
    assert len(cluster.created_instances - {"workers-1", "late-1", "bare-1"}) == 1
    assert knows_the_gate({"data": await cluster.status()})


async def everything_off(cluster: RunningCluster) -> None:
    """As before the feature: nodes without the driver are used, and nothing is bought."""
    await cluster.lab.forward(300 if isinstance(cluster.lab, VirtualLab) else 5)
    assert cluster.created_instances <= {"workers-1", "late-1", "bare-1"}
    assert not knows_the_gate({"data": await cluster.status()})


@pytest.mark.virtual
async def test_everything_off_and_on_again_in_virtual_time() -> None:
    for profile in (None, OFF, None):
        async with virtual_running_cluster(story("8-everything-off"), profile=profile) as cluster:
            await (everything_off if profile else everything_on)(cluster)


async def test_everything_off_over_https(tmp_path: Path) -> None:
    for number, profile in enumerate((None, OFF)):
        spec = story("8-everything-off", SOON, ("delay: 10m", "delay: 2s"))
        folder = tmp_path / str(number)
        folder.mkdir()
        async with live_running_cluster(spec, folder, FAST, profile=profile) as cluster:
            await (everything_off if profile else everything_on)(cluster)
