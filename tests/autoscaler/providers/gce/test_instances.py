"""Instances are created, fail, run, and are deleted."""

from __future__ import annotations

import pytest

from bayplan.nodegroups import (
    ErrorClass,
    Instance,
    InstanceState,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    RefusedError,
    UnimplementedError,
)
from tests.autoscaler.providers.gce.conftest import OpenedGce
from tests.autoscaler.providers.gce.fake_gce import FakeGce
from tests.autoscaler.providers.gce.project import PROJECT, REGION, ZONE, ZONES, FakeProject
from tests.embedded.cloud.clouds import ManualClock

pytestmark = pytest.mark.whole


def refs(provider_ids: list[str]) -> list[NodeRef]:
    return [NodeRef(one, one) for one in provider_ids]


async def ids(provider: Provider, group: str) -> list[str]:
    return [one.provider_id for one in await provider.instances(group)]


@pytest.mark.parametrize("location", [ZONE, REGION])
async def test_what_is_requested_counts_at_once_and_comes(
    project: FakeProject, opened: OpenedGce, location: str
) -> None:
    group = project.group(size=1, location=location)
    async with opened(f"0:4:{group.id}") as provider:
        await provider.increase(group.id, 2)
        assert (await provider.target_size(group.id), group.size) == (3, 3)
        await provider.refresh()
        states = [one.state.value for one in await provider.instances(group.id)]
        assert states == ["running", "creating", "creating"]
        project.settle()
        await opened.later(provider)
        found = await provider.instances(group.id)
        assert [one.state.value for one in found] == ["running"] * 3
        zones = {one.provider_id.split("/")[3] for one in found}
        assert zones == (set(ZONES) if location == REGION else {ZONE})
        for one in found:
            owner = await provider.group_for_node(NodeRef(one.provider_id))
            assert owner is not None
            assert owner.id == group.id
        for other in (f"gce://{PROJECT}/{ZONE}/other", "", "aws:///x/i-1", "gce://x", "workers-1"):
            assert await provider.group_for_node(NodeRef(other)) is None


async def test_a_group_keeps_to_its_maximum_as_it_is_now(
    project: FakeProject, opened: OpenedGce
) -> None:
    group = project.group(size=1)
    async with opened("0:4:workers") as provider:
        with pytest.raises(RefusedError, match="5 is above its maximum 4"):
            await provider.increase(group.id, 4)
        group.resize(3, [])
        with pytest.raises(RefusedError, match="5 is above its maximum 4"):
            await provider.increase(group.id, 2)
        await provider.increase(group.id, 1)
        for count in (0, -1):
            with pytest.raises(InvalidRequestError):
                await provider.increase(group.id, count)
            with pytest.raises(InvalidRequestError):
                await provider.decrease_target(group.id, count)
    assert group.size == 4


@pytest.mark.parametrize("location", [ZONE, REGION])
async def test_exactly_the_named_instances_are_deleted_and_not_replaced(
    project: FakeProject, opened: OpenedGce, gce: FakeGce, location: str
) -> None:
    group = project.group(size=3, location=location)
    async with opened(f"1:4:{group.id}") as provider:
        first, second, third = await ids(provider, group.id)
        await provider.delete_nodes(group.id, refs([second, second]))
        assert (await provider.target_size(group.id), group.size) == (2, 2)
        assert [one.provider_id for one in group.active()] == [first, third]
        await provider.refresh()
        assert Instance(second, InstanceState.DELETING) in await provider.instances(group.id)
        with pytest.raises(RefusedError, match="0 would be below its minimum 1"):
            await provider.delete_nodes(group.id, refs([first, third]))
        for bad in ("", "aws:///z/i-1", "gce://x"):
            with pytest.raises(NodeGroupNotFoundError, match="no instance"):
                await provider.delete_nodes(group.id, refs([first, bad]))
    assert group.size == 2
    assert "resize" not in gce.asked


async def test_a_deletion_that_is_repeated_lowers_the_size_once(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=3)
    async with opened("0:4:workers") as provider:
        first, *others = await ids(provider, group.id)
        await provider.delete_nodes(group.id, refs([first]))
        await provider.delete_nodes(group.id, refs([first]))
        assert group.size == 2
        assert gce.asked.count("deleteInstances") == 1
    async with opened("0:4:workers") as restarted:
        await restarted.delete_nodes(group.id, refs([first]))
        assert gce.asked.count("deleteInstances") == 1
        project.settle()
        await opened.later(restarted)
        assert await ids(restarted, group.id) == others
        await restarted.delete_nodes(group.id, refs([first]))
        assert await restarted.target_size(group.id) == group.size == 2
    async with opened("0:4:workers") as again:
        await again.delete_nodes(group.id, refs([first, others[0]]))
        assert await again.target_size(group.id) == group.size == 1
        assert [one.provider_id for one in group.active()] == others[1:]


async def test_one_that_another_deletes_meanwhile_is_not_counted(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=3)
    gce.polls = 2
    async with opened("0:4:workers") as provider:
        first, second, third = await ids(provider, group.id)

        async def deleted_meanwhile(_: object) -> None:
            group.delete({group.instances[0].url})

        gce.faults["get"] = deleted_meanwhile
        await provider.delete_nodes(group.id, refs([first, second]))
        assert group.size == 1
        assert [one.provider_id for one in group.active()] == [third]
        await provider.refresh()
        assert await provider.target_size(group.id) == 1


async def test_instances_of_other_groups_are_not_touched(
    project: FakeProject, opened: OpenedGce
) -> None:
    group, other = project.group(size=2), project.group("other", size=2)
    async with opened("0:4:workers", "0:4:other") as provider:
        theirs = (await ids(provider, other.id))[0]
        with pytest.raises(InvalidRequestError, match=r"is not in node group .*workers"):
            await provider.delete_nodes(group.id, refs([theirs]))
    assert (group.size, other.size) == (2, 2)


async def test_many_instances_are_read_in_pages(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=23)
    gce.page = 5
    async with opened("0:40:workers") as provider:
        assert len(await ids(provider, group.id)) == 23
        gone = (await ids(provider, group.id))[7:19]
        await provider.delete_nodes(group.id, refs(gone))
        assert group.size == 11
        assert not {one.provider_id for one in group.active()} & set(gone)


STOCK = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "the zone has no e2-standard-4"}
DETAILS = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "message": "no stock"}
QUOTA = {"code": "QUOTA_EXCEEDED", "message": "Quota 'CPUS' exceeded.  Limit: 24.0"}
ADDRESSES = {"code": "IP_SPACE_EXHAUSTED", "message": "IP space is exhausted"}


@pytest.mark.parametrize(
    ("errors", "kind", "code"),
    [
        ([STOCK], ErrorClass.OUT_OF_RESOURCES, STOCK["code"]),
        ([DETAILS], ErrorClass.OUT_OF_RESOURCES, DETAILS["code"]),
        ([QUOTA], ErrorClass.QUOTA, QUOTA["code"]),
        ([ADDRESSES], ErrorClass.OTHER, ADDRESSES["code"]),
        ([ADDRESSES, QUOTA], ErrorClass.QUOTA, QUOTA["code"]),
        ([{"message": "?"}], ErrorClass.OTHER, "OTHER"),
    ],
)
async def test_an_instance_that_cannot_be_created_has_its_error(
    project: FakeProject,
    opened: OpenedGce,
    errors: list[dict[str, str]],
    kind: ErrorClass,
    code: str,
) -> None:
    group = project.group(size=1)
    project.errors = errors
    async with opened("0:5:workers") as provider:
        await provider.increase(group.id, 1)
        project.settle()
        await provider.refresh()
        runs, failed = await provider.instances(group.id)
        assert runs.error is None
        assert failed.state is InstanceState.CREATING
        assert failed.error is not None
        assert (failed.error.kind, failed.error.code) == (kind, code)
        assert all(one["message"] in failed.error.message for one in errors)
        await provider.delete_nodes(group.id, refs([failed.provider_id]))
        project.settle()
        await provider.refresh()
        assert await ids(provider, group.id) == [runs.provider_id]
        assert await provider.target_size(group.id) == 1


async def test_an_instance_that_runs_has_no_error_of_the_past(
    project: FakeProject, opened: OpenedGce
) -> None:
    group = project.group(size=2)
    group.instances[0].errors = [STOCK]
    group.instances[1].errors = [ADDRESSES]
    group.instances[1].action = "RECREATING"
    async with opened("0:5:workers") as provider:
        assert [one.error for one in await provider.instances(group.id)] == [None, None]


async def test_the_target_can_fall_only_by_what_does_not_exist(
    project: FakeProject, opened: OpenedGce
) -> None:
    group = project.group(size=2)
    group.size = 4
    async with opened("0:5:workers") as provider:
        assert await provider.target_size(group.id) == 4
        with pytest.raises(RefusedError, match="2 instances already exist"):
            await provider.decrease_target(group.id, 3)
        await provider.decrease_target(group.id, 2)
        assert await provider.target_size(group.id) == group.size == 2
        assert len(group.active()) == 2


async def test_compute_engine_is_read_once_a_minute_and_after_every_change(
    project: FakeProject, opened: OpenedGce, gce: FakeGce
) -> None:
    group = project.group(size=1)
    async with opened(f"0:4:{group.id}") as provider:
        gce.asked.clear()
        for _ in range(5):
            await opened.later(provider, 10.0)
            await provider.template(group.id)
        assert gce.asked == []
        await opened.later(provider, 10.0)
        assert gce.asked == ["get", "listManagedInstances"]
        await provider.increase(group.id, 1)
        gce.asked.clear()
        await provider.refresh()
        assert gce.asked == ["get", "listManagedInstances"]


async def test_prices_are_not_read(
    project: FakeProject, opened: OpenedGce, clock: ManualClock
) -> None:
    project.group()
    async with opened("0:4:workers") as provider:
        with pytest.raises(UnimplementedError):
            await provider.node_price(NodeRef("x"), clock.now(), clock.now())
        await provider.cleanup()
