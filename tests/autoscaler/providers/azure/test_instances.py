"""Instances of scale sets: created, failed, deleted, missing."""

from __future__ import annotations

import pytest

from bayplan.nodegroups import (
    ErrorClass,
    InstanceState,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    QuotaExceededError,
    RefusedError,
    UnimplementedError,
)
from tests.autoscaler.providers.azure.conftest import Opened
from tests.autoscaler.providers.azure.fake_azure import FakeAzure, node_id
from tests.embedded.cloud.clouds import ManualClock

pytestmark = pytest.mark.whole


def refs(*numbers: object, name: str = "workers") -> list[NodeRef]:
    return [NodeRef(node_id(name, str(one))) for one in numbers]


async def states(provider: Provider, group: str = "workers") -> list[str]:
    return [one.state.value for one in await provider.instances(group)]


async def test_a_scale_up_counts_at_once_and_instances_follow(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        azure.sets["workers"].never_comes = 1
        await provider.increase("workers", 2)
        assert await provider.target_size("workers") == 3
        assert azure.sets["workers"].capacity == 3
        found = await provider.instances("workers")
        assert [one.state.value for one in found] == ["running", "creating", "creating"]
        assert found[1].provider_id == node_id("workers", "placeholder-1")
        await provider.refresh()
        found = await provider.instances("workers")
        assert [one.provider_id for one in found] == [
            node_id("workers", "0"),
            node_id("workers", "1"),
            node_id("workers", "placeholder-2"),
        ]
        assert await states(provider) == ["running", "creating", "creating"]
        azure.settle()
        azure.sets["workers"].create()
        azure.settle()
        await opened.later(provider)
        assert await states(provider) == ["running"] * 3


async def test_a_node_is_found_by_its_provider_id_in_any_case(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set("Workers", size=1)
    async with opened("0:4:workers") as provider:
        (one,) = await provider.instances("Workers")
        for text in (one.provider_id, "azure:///" + one.provider_id[9:].upper()):
            group = await provider.group_for_node(NodeRef(text))
            assert group is not None
            assert group.id == "Workers"
        for other in (
            "",
            "aws:///zone/i-1",
            node_id("others", "0"),
            node_id("Workers", "0").replace("mc_cluster", "mc_other"),
            node_id("Workers", "0").replace("1111", "2222"),
            node_id("Workers", "0").replace("virtualMachineScaleSets/Workers/", ""),
        ):
            assert await provider.group_for_node(NodeRef(other)) is None


async def test_a_scale_up_stops_at_the_maximum_as_it_is_now(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=1)
    async with opened("0:4:workers") as provider:
        with pytest.raises(RefusedError, match="5 is above its maximum 4"):
            await provider.increase("workers", 4)
        made.capacity = 3
        with pytest.raises(RefusedError, match="5 is above its maximum 4"):
            await provider.increase("workers", 2)
        for count in (0, -1):
            with pytest.raises(InvalidRequestError):
                await provider.increase("workers", count)
            with pytest.raises(InvalidRequestError):
                await provider.decrease_target("workers", count)
    assert "resize" not in azure.asked


async def test_exactly_the_right_instances_are_deleted(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set(size=4)
    async with opened("1:4:workers") as provider:
        await provider.delete_nodes("workers", refs(1, 3, 1))
        assert azure.deleted == ["workers/1", "workers/3"]
        assert await provider.target_size("workers") == 2
        assert await states(provider) == ["running", "deleting", "running", "deleting"]
        azure.settle()
        await provider.refresh()
        ids = [one.provider_id for one in await provider.instances("workers")]
        assert ids == [node_id("workers", "0"), node_id("workers", "2")]
        with pytest.raises(RefusedError, match="0 would be below its minimum 1"):
            await provider.delete_nodes("workers", refs(0, 2))
    assert azure.lowered == []
    assert azure.asked.count("delete") == 1


async def test_an_instance_that_is_being_deleted_is_not_deleted_again(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=3)
    async with opened("0:4:workers") as provider:
        await provider.delete_nodes("workers", refs(1))
        await provider.delete_nodes("workers", refs(1))
        await provider.refresh()
        await provider.delete_nodes("workers", refs(1))
        assert await provider.target_size("workers") == 2
    async with opened("0:4:workers") as restarted:
        await restarted.delete_nodes("workers", refs(1))
        assert await restarted.target_size("workers") == 2
        azure.settle()
        await restarted.delete_nodes("workers", refs(1))
        assert await restarted.target_size("workers") == 2
    assert azure.deleted == ["workers/1"]


async def test_a_deletion_that_azure_does_not_show_yet_is_remembered(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=3)
    async with opened("0:4:workers") as provider:
        await provider.delete_nodes("workers", refs(1))
        made.vms["1"].state, made.capacity = "Succeeded", 3
        await provider.refresh()
        assert await states(provider) == ["running", "deleting", "running"]
        assert await provider.target_size("workers") == 2
        await provider.delete_nodes("workers", refs(1))
        assert azure.deleted == ["workers/1"]
        # Azure has not done it at all: then it can be deleted again.
        await opened.later(provider, 301.0)
        assert await states(provider) == ["running"] * 3
        await provider.delete_nodes("workers", refs(1))
        assert azure.deleted == ["workers/1", "workers/1"]


async def test_instances_of_other_groups_are_not_touched(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set(size=2)
    azure.scale_set("other", size=2)
    async with opened("0:4:workers", "0:4:other") as provider:
        with pytest.raises(InvalidRequestError, match="is not in node group workers"):
            await provider.delete_nodes("workers", [*refs(0), *refs(0, name="other")])
        with pytest.raises(NodeGroupNotFoundError, match="there is no instance"):
            await provider.delete_nodes("workers", [*refs(0), NodeRef("aws:///zone/i-1")])
    assert azure.deleted == []


async def test_an_instance_that_goes_between_reading_and_deleting_is_done(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=3)
    async with opened("0:4:workers") as provider:
        left = [1]

        async def goes(_: object) -> None:
            if left[0]:
                left[0] -= 1
                del made.vms["1"]
                made.capacity -= 1

        azure.troubles["delete"] = goes
        await provider.delete_nodes("workers", refs(0, 1))
        assert azure.deleted == ["workers/0"]
        assert azure.asked.count("delete") == 2


STOCK = "Allocation failed. We do not have sufficient capacity for the requested VM size."
QUOTA = "Operation could not be completed as it results in exceeding approved Cores quota."


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        ("AllocationFailed", STOCK, ErrorClass.OUT_OF_RESOURCES),
        ("ZonalAllocationFailed", STOCK, ErrorClass.OUT_OF_RESOURCES),
        ("SkuNotAvailable", "", ErrorClass.OUT_OF_RESOURCES),
        ("OperationNotAllowed", QUOTA, ErrorClass.QUOTA),
        ("QuotaExceeded", "", ErrorClass.QUOTA),
        ("OperationNotAllowed", "the image is being replicated", ErrorClass.OTHER),
        ("OSProvisioningTimedOut", "", ErrorClass.OTHER),
    ],
)
async def test_a_failed_instance_has_azures_error_and_can_be_deleted(
    azure: FakeAzure, opened: Opened, code: str, message: str, kind: ErrorClass
) -> None:
    made = azure.scale_set(size=1, fails=(code, message))
    made.vms["0"] = type(made.vms["0"])("0", "Succeeded", power="running")
    async with opened("1:4:workers") as provider:
        await provider.increase("workers", 1)
        azure.settle()
        await provider.refresh()
        _, failed = await provider.instances("workers")
        assert failed.state is InstanceState.CREATING
        assert failed.error is not None
        assert (failed.error.kind, failed.error.code) == (kind, code)
        assert failed.error.message == message
        await provider.delete_nodes("workers", [NodeRef(failed.provider_id)])
        assert azure.deleted == ["workers/1"]
        assert await provider.target_size("workers") == 1


async def test_a_failed_instance_can_be_deleted_below_the_minimum(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=1, fails=("AllocationFailed", STOCK))
    async with opened("1:4:workers") as provider:
        await provider.delete_nodes("workers", refs(0))
    assert azure.deleted == ["workers/0"]


async def test_a_failure_of_an_instance_that_runs_is_no_error(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=2)
    for one in made.vms.values():
        one.state, one.code = "Failed", "VMExtensionProvisioningError"
    async with opened("0:4:workers") as provider:
        assert [one.error for one in await provider.instances("workers")] == [None, None]
        assert await states(provider) == ["running", "running"]


async def test_missing_instances_have_the_scale_sets_error_and_are_only_given_up(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=2)
    async with opened("0:5:workers") as provider:
        made.never_comes, made.error = 2, ("AllocationFailed", STOCK)
        await provider.increase("workers", 2)
        azure.settle()
        await provider.refresh()
        assert await provider.target_size("workers") == 4
        *_, third, _ = await provider.instances("workers")
        assert third.error is not None
        assert third.error.kind is ErrorClass.OUT_OF_RESOURCES
        group = await provider.group_for_node(NodeRef(third.provider_id))
        assert group is not None
        await provider.delete_nodes("workers", [NodeRef(third.provider_id)])
        assert await provider.target_size("workers") == 3
        await opened.later(provider)
        assert await provider.target_size("workers") == 3
        await provider.decrease_target("workers", 1)
        assert await provider.target_size("workers") == 2
        with pytest.raises(RefusedError, match="2 instances already exist"):
            await provider.decrease_target("workers", 1)
        assert (made.capacity, azure.deleted, azure.lowered) == (4, [], [])
        # The next scale-up counts from what there is, and never lowers the capacity.
        made.error = ("", "")
        await provider.increase("workers", 1)
        azure.settle()
        await provider.refresh()
        assert await provider.target_size("workers") == made.capacity == 4
        assert len(await provider.instances("workers")) == 4
        assert azure.lowered == []


async def test_the_quota_is_an_error_of_the_scale_up(azure: FakeAzure, opened: Opened) -> None:
    azure.scale_set(size=1)
    azure.quota = 2
    async with opened("0:4:workers") as provider:
        with pytest.raises(QuotaExceededError, match="exceeding approved quota"):
            await provider.increase("workers", 2)
        assert await provider.target_size("workers") == 1


async def test_a_concurrent_change_is_read_again_and_never_lowered(
    azure: FakeAzure, opened: Opened
) -> None:
    made = azure.scale_set(size=1)
    async with opened("0:9:workers") as provider:

        async def others(_: object) -> None:
            del azure.troubles["resize"]
            made.capacity, made.version = 4, made.version + 1

        azure.troubles["resize"] = others
        await provider.increase("workers", 2)
        assert made.capacity == 6
        assert azure.lowered == []


async def test_azure_is_read_once_a_minute_and_after_every_change(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.scale_set(size=2)
    async with opened("0:4:workers") as provider:
        assert azure.asked == ["list", "vms"]
        azure.asked.clear()
        for _ in range(5):
            await opened.later(provider, 10.0)
        assert azure.asked == []
        await opened.later(provider, 10.0)
        assert azure.asked == ["list"]
        for _ in range(4):
            await opened.later(provider)
        assert (azure.asked.count("list"), azure.asked.count("vms")) == (5, 1)
        azure.asked.clear()
        await provider.increase("workers", 1)
        await provider.refresh()
        assert azure.asked == ["get", "resize", "list", "vms"]


async def test_many_scale_sets_and_instances_are_read_in_pages(
    azure: FakeAzure, opened: Opened
) -> None:
    azure.page = 3
    for number in range(8):
        azure.scale_set(f"pool-{number}", size=number, tags={"a": "b", "min": "0", "max": "9"})
    async with opened(discovery=("label:a=b",)) as provider:
        groups = [one.id for one in await provider.groups()]
        assert groups == [f"pool-{number}" for number in range(8)]
        assert len(await provider.instances("pool-7")) == 7


async def test_prices_are_not_read(azure: FakeAzure, opened: Opened, clock: ManualClock) -> None:
    azure.scale_set()
    async with opened("0:4:workers") as provider:
        with pytest.raises(UnimplementedError):
            await provider.node_price(NodeRef("x"), clock.now(), clock.now())
        await provider.cleanup()
