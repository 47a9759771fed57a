"""Whoever runs an autoscaler that does not know the gate is told once, and by a metric."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from bayplan.client import Client, Untyped, merge
from bayplan.client.resources import CONFIG_MAPS, EVENTS
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.lab import VirtualLab
from bayplan.scheduler.config import default_settings
from bayplan.scheduler.daemon import SchedulerDaemon
from bayplan.scheduler.skew import NAME, NAMESPACE, knows_the_gate
from tests.scheduler.test_stories import NOBODY

METRIC = "bayplan_scheduler_volume_limit_scaling_skew"


@pytest.mark.parametrize(
    ("data", "knows"),
    [
        ({"featureGates": "VolumeLimitScaling=true"}, True),
        ({"featureGates": " Other=false, VolumeLimitScaling = True "}, True),
        ({"featureGates": "VolumeLimitScaling=false"}, False),
        ({"featureGates": "VolumeLimitScaling"}, False),
        ({"featureGates": ["VolumeLimitScaling=true"]}, False),
        ({"status": "time: now"}, False),
        (None, False),
    ],
)
def test_only_a_gate_that_is_said_to_be_on_is_on(data: object, knows: bool) -> None:
    assert knows_the_gate({"data": data}) is knows


@pytest.mark.virtual
@pytest.mark.parametrize("gate", [True, False])
async def test_the_skew_is_told_once_for_each_time_that_it_comes(gate: bool) -> None:
    registry = CollectorRegistry()
    profile = Profile(gates=FeatureGates({"VolumeLimitScaling": gate}))
    daemon = SchedulerDaemon(default_settings(), profile=profile, registry=registry)
    async with VirtualLab(NOBODY, [daemon.lead]) as lab:
        client = lab.client()
        await lab.forward(5)
        assert (registry.get_sample_value(METRIC), await count_skew_events(client)) == (0, 0)
        await client.create(_status(status="time: now"))
        for moment in ("later", "later still"):
            await write_gates(client, status=f"time: {moment}")
        await lab.forward(5)
        expected = (1, 1) if gate else (0, 0)
        assert (registry.get_sample_value(METRIC), await count_skew_events(client)) == expected
        await write_gates(client, featureGates="VolumeLimitScaling=true")
        await lab.forward(5)
        assert registry.get_sample_value(METRIC) == 0
        await client.delete(CONFIG_MAPS, NAMESPACE, NAME)
        await lab.forward(5)
        assert registry.get_sample_value(METRIC) == 0


def _status(**data: str) -> Untyped:
    meta = {"namespace": NAMESPACE, "name": NAME}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


async def write_gates(client: Client, **data: str) -> None:
    await client.patch(CONFIG_MAPS, NAMESPACE, NAME, change=merge({"data": data}))


async def count_skew_events(client: Client) -> int:
    """How many events there are of it."""
    events = (await client.list(EVENTS, NAMESPACE)).items
    return sum(event.reason == "VolumeLimitScalingSkew" for event in events)
