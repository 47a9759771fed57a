"""Every question a cloud can be asked, with the same answers in process and on the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from bayplan.base.clock import START
from bayplan.embedded.nodes.machines import GPU_LABEL
from bayplan.kube.nodes import Node
from bayplan.kube.storage import VolumeNodeResources
from bayplan.nodegroups import (
    CSI_DRIVERS,
    CloudNodeGroup,
    ErrorClass,
    GroupOptions,
    Instance,
    InstanceError,
    InstanceState,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    QuotaExceededError,
    RefusedError,
    UnimplementedError,
)
from tests.builders import make_pod
from tests.embedded.cloud.clouds import DISK, FILES, ServedProvider, SimulatedCloud

HOUR = timedelta(hours=1)


@pytest.fixture
def simulated() -> SimulatedCloud:
    made = SimulatedCloud()
    made.forward()
    return made


@pytest.fixture(params=["in process", "socket", "tls"])
async def provider(
    request: pytest.FixtureRequest, simulated: SimulatedCloud, tmp_path: Path
) -> AsyncIterator[Provider]:
    async with ServedProvider(simulated.provider, request.param, tmp_path) as served:
        yield served


def running(name: str) -> Instance:
    return Instance(f"sim://workers/{name}", InstanceState.RUNNING)


def creating(name: str) -> Instance:
    return Instance(f"sim://workers/{name}", InstanceState.CREATING)


async def test_groups_have_bounds_and_a_line_about_them(provider: Provider) -> None:
    assert await provider.groups() == [
        CloudNodeGroup("gpus", 0, 3, "gpu in zone-a"),
        CloudNodeGroup("workers", 1, 5, "large in zone-a, zone-b"),
    ]


async def test_a_node_belongs_to_the_group_that_its_instance_is_of(provider: Provider) -> None:
    found = await provider.group_for_node(NodeRef("sim://workers/workers-1", "workers-1"))
    assert found is not None
    assert found.id == "workers"
    for other in ("sim://workers/workers-9", "aws:///zone/i-1", ""):
        assert await provider.group_for_node(NodeRef(other, "workers-1")) is None


async def test_what_is_bought_is_creating_and_then_runs(
    provider: Provider, simulated: SimulatedCloud
) -> None:
    await provider.increase("workers", 2)
    assert await provider.target_size("workers") == 4
    assert await provider.instances("workers") == [
        running("workers-1"), running("workers-2"), creating("workers-3"), creating("workers-4"),
    ]  # fmt: skip
    simulated.forward()
    assert (await provider.instances("workers"))[-1] == running("workers-4")
    assert sorted(simulated.fleet.machines) == ["workers-1", "workers-2", "workers-3", "workers-4"]


async def test_an_instance_without_stock_says_why_and_can_be_given_back(
    provider: Provider, simulated: SimulatedCloud
) -> None:
    simulated.inject(kind="stock-out", group="workers")
    await provider.increase("workers", 1)
    simulated.forward()
    failed = (await provider.instances("workers"))[-1]
    why = InstanceError(ErrorClass.OUT_OF_RESOURCES, "OUT_OF_STOCK", "no large left in zone-a")
    assert failed == Instance("sim://workers/workers-3", InstanceState.CREATING, why)
    await provider.delete_nodes("workers", [NodeRef(failed.provider_id, failed.provider_id)])
    assert await provider.target_size("workers") == 2


async def test_nodes_are_given_back_all_or_none(
    provider: Provider, simulated: SimulatedCloud
) -> None:
    both = [NodeRef(f"sim://workers/workers-{number}") for number in (1, 2)]
    with pytest.raises(RefusedError, match="0 would be below its minimum 1"):
        await provider.delete_nodes("workers", both)
    with pytest.raises(NodeGroupNotFoundError, match="workers-9"):
        await provider.delete_nodes("workers", [both[0], NodeRef("sim://workers/workers-9")])
    with pytest.raises(InvalidRequestError, match="not of node group gpus"):
        await provider.delete_nodes("gpus", [both[0]])
    assert await provider.target_size("workers") == 2
    await provider.delete_nodes("workers", [both[0], both[0]])
    assert await provider.instances("workers") == [running("workers-2")]
    simulated.settle()
    assert list(simulated.fleet.machines) == ["workers-2"]


async def test_an_instance_is_meant_only_by_its_whole_id(provider: Provider) -> None:
    for almost in ("sim://gpus/workers-1", "workers-1", "sim://workers-1", "aws://x/workers-1"):
        assert await provider.group_for_node(NodeRef(almost, "workers-1")) is None
        with pytest.raises(NodeGroupNotFoundError):
            await provider.delete_nodes("workers", [NodeRef(almost, "workers-1")])
    assert await provider.target_size("workers") == 2


async def test_the_target_can_fall_only_by_what_does_not_run_yet(provider: Provider) -> None:
    await provider.increase("workers", 2)
    with pytest.raises(RefusedError, match="only 2"):
        await provider.decrease_target("workers", 3)
    await provider.decrease_target("workers", 1)
    assert (await provider.instances("workers"))[2:] == [creating("workers-3")]


@pytest.mark.parametrize("count", [0, -1])
async def test_sizes_change_by_more_than_nothing(provider: Provider, count: int) -> None:
    with pytest.raises(InvalidRequestError):
        await provider.increase("workers", count)
    with pytest.raises(InvalidRequestError):
        await provider.decrease_target("workers", count)


async def test_a_group_keeps_to_its_maximum_and_the_account_to_its_quota(
    provider: Provider, simulated: SimulatedCloud
) -> None:
    with pytest.raises(RefusedError, match="6 is above its maximum 5"):
        await provider.increase("workers", 4)
    simulated.inject(kind="quota", group="workers")
    with pytest.raises(QuotaExceededError, match="workers"):
        await provider.increase("workers", 1)
    assert await provider.target_size("workers") == 2


async def test_a_group_that_is_not_there_is_not_found(provider: Provider) -> None:
    missing = "there is no node group 'others'; there are: gpus, workers"
    for question in (
        provider.target_size("others"),
        provider.instances("others"),
        provider.template("others"),
        provider.options("others", GroupOptions()),
        provider.increase("others", 1),
        provider.decrease_target("others", 1),
        provider.delete_nodes("others", []),
    ):
        with pytest.raises(NodeGroupNotFoundError, match=missing):
            await question


async def test_a_template_is_a_ready_node_with_the_limits_of_its_drivers(
    provider: Provider, simulated: SimulatedCloud
) -> None:
    found = await provider.template("workers")
    assert found == await simulated.provider.template("workers")
    node = found.node
    assert node.metadata.labels["topology.disk.example.com/zone"] == "zone-a"
    assert node.metadata.labels["team"] == "shop"
    assert node.metadata.annotations == {CSI_DRIVERS: f"{DISK}=8,{FILES}=none"}
    assert node.status.allocatable["memory"] == "32Gi"
    assert node.status.allocatable["attachable-volumes-csi-other.example.com"] == "4"
    assert [(one.key, one.value, one.effect) for one in node.spec.taints] == [
        ("dedicated", "shop", "NoSchedule")
    ]
    assert {one.type: one.status for one in node.status.conditions}["Ready"] == "True"
    assert found.csi_node is not None
    limits = {one.name: one.allocatable for one in found.csi_node.spec.drivers}
    assert limits == {DISK: VolumeNodeResources(count=8), FILES: None}
    assert found.problems == ()


async def test_a_template_without_drivers_promises_none(provider: Provider) -> None:
    found = await provider.template("gpus")
    assert found.csi_node is not None
    assert found.csi_node.spec.drivers == []


async def test_options_are_the_defaults_but_for_what_the_group_says(provider: Provider) -> None:
    defaults = GroupOptions(scale_down_utilization_threshold=0.7, max_node_provision_time=61.5)
    wanted = replace(defaults, zero_or_max_node_scaling=True, scale_down_unneeded_time=90.0)
    assert await provider.options("gpus", defaults) == wanted


async def test_options_are_not_offered_where_a_group_has_none(provider: Provider) -> None:
    with pytest.raises(UnimplementedError):
        await provider.options("workers", GroupOptions())


async def test_a_node_costs_what_its_type_costs(provider: Provider) -> None:
    real = NodeRef("sim://workers/workers-1")
    template = NodeRef.of((await provider.template("gpus")).node)
    typed = NodeRef(labels={"node.kubernetes.io/instance-type": "gpu"})
    assert await provider.node_price(real, START, START + 2 * HOUR) == pytest.approx(1.0)
    for node in (template, typed):
        assert await provider.node_price(node, START, START + HOUR) == pytest.approx(3.0)
    with pytest.raises(NodeGroupNotFoundError):
        await provider.node_price(NodeRef.of(Node()), START, START + HOUR)
    with pytest.raises(InvalidRequestError, match="before"):
        await provider.node_price(real, START, START - HOUR)


async def test_a_pod_costs_its_share_of_the_cheapest_machine(provider: Provider) -> None:
    small = make_pod("p").cpu("2").memory("1Gi").obj()
    greedy = make_pod("p").request("nvidia.com/gpu", "1").obj()
    odd = make_pod("p").request("example.com/odd", "1").obj()
    assert await provider.pod_price(small, START, START + HOUR) == pytest.approx(0.125)
    assert await provider.pod_price(greedy, START, START + HOUR) == pytest.approx(3.0)
    with pytest.raises(NodeGroupNotFoundError):
        await provider.pod_price(odd, START, START + HOUR)


async def test_gpus_are_what_groups_say_of_them(provider: Provider) -> None:
    assert await provider.gpu_label() == GPU_LABEL
    assert await provider.gpu_types() == {"a100"}


async def test_a_round_of_questions_begins_and_ends(provider: Provider) -> None:
    await provider.refresh()
    await provider.cleanup()
    assert await provider.groups()
