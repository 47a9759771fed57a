"""Scale sets: which are node groups, and what their next node is like."""

from __future__ import annotations

import pytest

from bayplan.client import Client
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    NodeGroupNotFoundError,
    UnimplementedError,
)
from tests.autoscaler.providers.azure.conftest import Opened
from tests.autoscaler.providers.azure.fake_azure import FakeAzure
from tests.autoscaler.providers.declared.test_overlay import limits

pytestmark = pytest.mark.whole

TEMPLATE = "k8s.io_cluster-autoscaler_node-template_"
DISKS = "disk.csi.azure.com"
ZONE, DISK_ZONE = "topology.kubernetes.io/zone", "topology.disk.csi.azure.com/zone"
TYPE, REGION = "node.kubernetes.io/instance-type", "topology.kubernetes.io/region"


async def with_driver(client: Client, name: str = DISKS) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}}
    await client.create({**driver, "spec": {}})


async def test_named_scale_sets_have_the_sizes_of_the_flag(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=2, zones=["1", "3"], tags={"min": "1", "max": "2"})
    azure.scale_set("other")
    async with opened("0:4:workers") as provider:
        zones = ("westeurope-1", "westeurope-3")
        text = "scale set of Standard_D4s_v5 in westeurope-1, westeurope-3"
        assert await provider.groups() == [CloudNodeGroup("workers", 0, 4, text, zones)]
        assert await provider.target_size("workers") == 2
        assert await provider.problems() == []
        with pytest.raises(NodeGroupNotFoundError, match="no node group 'other'"):
            await provider.target_size("other")


async def test_scale_sets_are_discovered_by_tags(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set("a", tags={"team": "shop", "min": "1", "max": "7"}, size=1)
    azure.scale_set("b", tags={"team": "ops", "min": "0", "max": "5"})
    azure.scale_set("c", tags={"team": "shop", "max": "5"})
    azure.scale_set("d")
    async with opened("2:3:d", discovery=("label:team=shop",)) as provider:
        found = {one.id: (one.min_size, one.max_size) for one in await provider.groups()}
        assert found == {"a": (1, 7), "d": (2, 3)}
        (problem,) = await provider.problems()
        assert (problem.group, "tag min: is not set" in problem.text) == ("c", True)


async def test_what_cannot_be_a_group_is_reported(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set("flexible", mode="Flexible")
    azure.scale_set("leaving").state = "Deleting"
    async with opened("0:4:flexible", "0:4:leaving", "0:4:Missing") as provider:
        assert await provider.groups() == []
        found = {one.group: one.text for one in await provider.problems()}
        assert "only Uniform scale sets are supported" in found["flexible"]
        assert found["leaving"] == found["Missing"] == "there is no scale set with this name"


async def test_a_template_is_the_vm_size_with_the_tags_over_it(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(
        zones=["2", "1"],
        profile={"storageProfile": {"osDisk": {"diskSizeGB": 128}}, "osProfile": None},
        tags={
            f"{TEMPLATE}label_pool": "a",
            f"{TEMPLATE}label_example.com_team~2name": "shop",
            f"{TEMPLATE}taint_example.com_dedicated": "shop:NoSchedule",
            f"{TEMPLATE}taint_spot": ":NoExecute",
            f"{TEMPLATE}resources_example.com_dongles": "3",
            f"{TEMPLATE}resources_pods": "30",
            f"{TEMPLATE}csi-driver_{DISKS}": "5",
            f"{TEMPLATE}csi-driver_file.csi.azure.com": "none",
            f"{TEMPLATE}autoscaling-options_scaledownunneededtime": "5m",
            "aks-managed-poolName": "nodepool1",
        },
    )
    async with opened("0:4:workers") as provider:
        found = await provider.template("workers")
        held = found.node.status.capacity
        assert {key: str(value) for key, value in held.items()} == {
            "cpu": "4",
            "memory": "16384Mi",
            "ephemeral-storage": "128Gi",
            "pods": "30",
            "example.com/dongles": "3",
        }
        labels = found.node.metadata.labels
        assert (labels["pool"], labels["example.com/team_name"]) == ("a", "shop")
        assert (labels[TYPE], labels[REGION]) == ("Standard_D4s_v5", "westeurope")
        assert labels[ZONE] == labels[DISK_ZONE] == "westeurope-2"
        assert (labels["kubernetes.io/arch"], labels["kubernetes.io/os"]) == ("amd64", "linux")
        assert labels["agentpool"] == labels["kubernetes.azure.com/agentpool"] == "nodepool1"
        taints = [(one.key, one.value, one.effect) for one in found.node.spec.taints]
        assert taints == [
            ("example.com/dedicated", "shop", "NoSchedule"),
            ("spot", "", "NoExecute"),
        ]
        assert limits(found) == {DISKS: 5, "file.csi.azure.com": None}
        assert found.estimated == frozenset()
        options = await provider.options("workers", GroupOptions())
        assert options.scale_down_unneeded_time == 300.0


@pytest.mark.parametrize(
    ("size", "disks"),
    [
        ("Standard_D4s_v5", 8),  # of the table
        ("Standard_New9", 6),  # of the SKU
        ("Standard_New10", 16),  # Azure's default
    ],
)
async def test_disks_are_limited_by_the_vm_size_if_their_driver_is_installed(
    azure: FakeAzure, opened: Opened, client: Client, size: str, disks: int
) -> None:
    azure.scale_set(size=0, profile={})
    azure.sets["workers"].size = size
    async with opened("0:4:workers") as provider:
        assert limits(await provider.template("workers")) is None
    await with_driver(client)
    async with opened("0:4:workers") as provider:
        found = await provider.template("workers")
        assert limits(found) == {DISKS: disks}
        assert found.estimated == {DISKS}


async def test_a_limit_that_cannot_be_read_leaves_its_driver_out(
    azure: FakeAzure, opened: Opened, client: Client
) -> None:
    await with_driver(client)
    azure.scale_set(tags={f"{TEMPLATE}csi-driver_{DISKS}": "many"})
    async with opened("0:4:workers") as provider:
        found = await provider.template("workers")
        assert (limits(found), found.estimated) == ({}, frozenset())
        (problem,) = await provider.problems()
        assert problem.group == "workers"
        assert "'many': the limit must be a whole number, or none" in problem.text


async def test_tags_that_cannot_be_read_are_reported(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set(
        tags={
            f"{TEMPLATE}label_a": "not a label",
            f"{TEMPLATE}resources_cpu": "lots",
            f"{TEMPLATE}autoscaling-options_scaledownunneededtime": "5",
            f"{TEMPLATE}taint_b": "x:Sometimes",
        }
    )
    async with opened("0:4:workers") as provider:
        assert len(await provider.problems()) == 4
        with pytest.raises(UnimplementedError, match="the effect must be one of"):
            await provider.template("workers")


@pytest.mark.parametrize(
    ("size", "resources"),
    [
        ("Standard_E4-2s_v5", {"cpu": 2, "memory": "32768Mi"}),
        ("Standard_NC6s_v3", {"cpu": 6, "nvidia.com/gpu": 1}),
        ("Standard_NP10s", {"xilinx.com/fpga-xilinx_u250_gen3x16_xdma_shell_2_1-0": 1}),
        ("standard_new9", {"cpu": 9, "memory": "3584Mi"}),
    ],
)
async def test_vm_sizes_are_read_from_the_list_of_skus(
    azure: FakeAzure, opened: Opened, size: str, resources: dict[str, object]
) -> None:
    azure.scale_set().size = size
    azure.page = 2
    async with opened("0:4:workers") as provider:
        held = (await provider.template("workers")).node.status.capacity
        assert {key: held[key] for key in resources} == resources
        if size == "Standard_NC6s_v3":
            label = await provider.gpu_label()
            kind = (await provider.template("workers")).node.metadata.labels[label]
            assert kind in await provider.gpu_types()


async def test_architecture_and_system_come_from_size_and_profile(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(profile={"osProfile": {"windowsConfiguration": {}}}).size = "Standard_D4ps_v5"
    async with opened("0:4:workers") as provider:
        labels = (await provider.template("workers")).node.metadata.labels
        assert (labels["kubernetes.io/arch"], labels["kubernetes.io/os"]) == ("arm64", "windows")
        assert (labels[ZONE], labels[DISK_ZONE]) == ("0", "")


async def test_the_list_of_skus_is_read_once_a_day_for_all_groups(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set()
    azure.scale_set("other").size = "Standard_Odd"
    async with opened("0:4:workers", "0:4:other") as provider:
        for _ in range(3):
            await provider.template("workers")
            with pytest.raises(UnimplementedError, match="no VM size 'Standard_Odd' in westeurope"):
                await provider.template("other")
        assert azure.asked.count("skus") == 1
        await opened.later(provider, 901.0)
        await provider.template("workers")
        assert azure.asked.count("skus") == 1
        with pytest.raises(UnimplementedError):
            await provider.template("other")
        assert azure.asked.count("skus") == 2
        azure.fails("skus", "Broken", 500)
        await opened.later(provider, 25 * 3600.0)
        await provider.template("workers")
        with pytest.raises(UnimplementedError, match="Azure: Broken"):
            await provider.template("other")
