"""Story 6 with our scheduler, our autoscaler and the agent: old limits, by node type.

The same in virtual time, and over HTTPS and gRPC.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bayplan.autoscaler.cloudstate.reader import unchanged
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.client.errors import InvalidError
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.lab import VirtualLab
from bayplan.node.decision import AttachLimitSettings, expect_limits
from bayplan.node.settings import settings_of
from tests.autoscaler.running_autoscaler import (
    RunningCluster,
    all_run,
    live_running_cluster,
    story,
    virtual_running_cluster,
)
from tests.clocks import in_virtual_time
from tests.node.running_agent import RunningAgent, limits_of, publishing, retype
from tests.scheduler.running_scheduler import pod

pytestmark = pytest.mark.whole


NAME = "6-old-limits-by-node-type"
FAST = AutoscalerOptions(scan_interval=0.3, initial_node_group_backoff_duration=1.0)
SOON = (
    ("instanceType: Standard_D2s_v3", "instanceType: Standard_D2s_v3\n    start: 0.5"),
    # Nobody places pods before the driver is there, and until then the agent has long published.
    ("limit: none,", "limit: none, delay: 6,"),
    ("at: 5m", "at: 8s"),
)
AZURE = "azure-disk"
OFF = Profile(gates=FeatureGates({"AttachVolumeLimit": False}))


async def by_node_type(cluster: RunningCluster, at: RunningAgent) -> None:
    """Every node takes what its size can, no more; for ten more pods three nodes are bought."""
    await cluster.until(all_run(30))
    bought = [f"small-{number}" for number in range(1, 5)]
    assert await cluster.nodes() == ["custom-1", "large-1", *bought]
    on = Counter(one.spec.node_name for one in await cluster.pods())
    assert on["large-1"] == 16
    assert sum(on[name] for name in bought) == 30 - 16
    assert max(on[name] for name in bought) <= 4
    assert not await cluster.event_notes("FailedAttachVolume")
    await _published(at, {"custom-1": 16, "large-1": 16, **dict.fromkeys(bought, 4)})
    (guess,) = await cluster.event_notes("UnknownInstanceType")
    assert guess.startswith("azure-disk Standard_Z9_custom, not in the table: 16 data disks;")
    await _cannot_be_asked_for(cluster)


async def _published(at: RunningAgent, counts: dict[str, int]) -> None:
    for name, count in counts.items():
        keys = (f"attachable-volumes-{AZURE}", f"storage-attach-limits-{AZURE}")
        await at.publishes(name, dict.fromkeys(keys, count))


async def _cannot_be_asked_for(cluster: RunningCluster) -> None:
    """Under either prefix, in requests and in limits."""
    for prefix in ("attachable-volumes", "storage-attach-limits"):
        asked = {f"{prefix}-{AZURE}": "1"}
        for amounts in ({"limits": asked, "requests": asked}, {"limits": asked}):
            wish = pod("default", "asks")
            wish["spec"]["containers"][0]["resources"] = amounts  # type: ignore[index]
            with pytest.raises(InvalidError, match=f"{prefix}-{AZURE}"):
                await cluster.client.create(wish)


@pytest.fixture
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RunningCluster]:
    """The story's cluster, on the clock that this run of the test is on."""
    virtual = in_virtual_time(request)
    made = (
        virtual_running_cluster(story(NAME))
        if virtual
        else live_running_cluster(story(NAME, *SOON), tmp_path, FAST)
    )
    async with made as cluster:
        yield cluster


@pytest.mark.virtual
@pytest.mark.wall
async def test_old_limits_by_node_type(cluster: RunningCluster) -> None:
    client = cluster.lab.client() if isinstance(cluster.lab, VirtualLab) else cluster.client
    async with publishing(client, _settings(cluster)) as at:
        await by_node_type(cluster, at)


def _settings(cluster: RunningCluster) -> AttachLimitSettings:
    assert cluster.lab.spec.attach_limits is not None
    return settings_of(cluster.lab.spec.attach_limits, enabled=True)


@pytest.mark.virtual
async def test_a_node_of_another_type_takes_more_and_pods_over_a_lowered_limit_stay() -> None:
    spec = story(NAME, ("max: 10", "max: 1"))
    async with (
        virtual_running_cluster(spec) as cluster,
        publishing(cluster.lab.client(), _settings(cluster)) as at,
    ):
        await cluster.lab.forward(420)
        assert Counter(one.status.phase for one in await cluster.pods()) == {
            "Running": 20,
            "Pending": 10,
        }
        await retype(cluster.client, "small-1", "Standard_D8s_v3")
        await _published(at, {"small-1": 16})
        # The machine itself can still attach four, so what comes waits for its volumes there.
        await cluster.until(lambda pods: sum(bool(p.spec.node_name) for p in pods.values()) == 30)
        await retype(cluster.client, "small-1", "Standard_D2s_v3")
        await _published(at, {"small-1": 4})
        await cluster.lab.forward(120)
        on = Counter(one.spec.node_name for one in await cluster.pods())
        assert on["small-1"] == 14
        (over,) = await cluster.event_notes("VolumeLimitExceeded")
        assert over.startswith("14 volumes of disk.csi.azure.com are attached, over the limit 4")


@pytest.mark.virtual
async def test_with_the_gate_off_nothing_is_published_and_nothing_kept_and_on_it_is_again() -> None:
    for profile in (None, OFF, None):
        await _on_or_off(profile)


async def _on_or_off(profile: Profile | None) -> None:
    spec, on = story(NAME), profile is None
    assert spec.attach_limits is not None
    settings = settings_of(spec.attach_limits, enabled=on)
    async with (
        virtual_running_cluster(spec, profile=profile) as cluster,
        publishing(cluster.lab.client(), settings),
    ):
        await cluster.lab.forward(150)
        nodes = (await cluster.client.list(Node)).items
        assert all(bool(limits_of(one.status.allocatable)) is on for one in nodes)
        placed = Counter(one.spec.node_name for one in (await cluster.client.list(Pod)).items)
        assert (placed["small-1"] <= 4 and placed["large-1"] <= 16) is on


@pytest.mark.virtual
async def test_from_zero_as_many_are_bought_as_the_limits_to_come_call_for() -> None:
    settings = _from_zero().attach_limits
    assert settings is not None
    rules = settings_of(settings, enabled=True)
    for expects, bought in ((unchanged, 1), (expect_limits(lambda: rules), 5)):
        async with virtual_running_cluster(_from_zero(), expects=expects) as cluster:
            # Nobody publishes yet, so that what is bought is what was believed beforehand.
            await cluster.lab.forward(25)
            assert len(cluster.created_instances - {"custom-1"}) == bought
            async with publishing(cluster.lab.client(), rules):
                await cluster.until(all_run(20))
            on = Counter(one.spec.node_name for one in await cluster.pods())
            assert sorted(on.values()) == [4, 4, 4, 4, 4]


def _from_zero() -> ClusterSpec:
    """Only small nodes can be bought, and there is none yet."""
    spec = story(NAME, ("count: 1\n    max: 10", "count: 0\n    max: 10"), ("at: 5m", "at: 5h"))
    return replace(spec, groups=tuple(one for one in spec.groups if one.name != "large"))
