"""Instances are bought, come, do not come, and go."""

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
from tests.autoscaler.providers.aws.account import Account
from tests.autoscaler.providers.aws.conftest import Opened
from tests.autoscaler.providers.aws.wire import Wire
from tests.embedded.cloud.clouds import ManualClock

pytestmark = pytest.mark.whole


SCALING = "http://autoscaling.amazonaws.com/doc/2011-01-01/"


def activities(*rows: tuple[str, str, str]) -> str:
    """Newest first: status, when, message."""
    members = "".join(
        f"<member><ActivityId>{number}</ActivityId><StatusCode>{status}</StatusCode>"
        f"<StartTime>{start}</StartTime><StatusMessage>{message}</StatusMessage></member>"
        for number, (status, start, message) in enumerate(rows)
    )
    result = f"<DescribeScalingActivitiesResult><Activities>{members}</Activities>"
    return (
        f'<DescribeScalingActivitiesResponse xmlns="{SCALING}">{result}'
        "</DescribeScalingActivitiesResult></DescribeScalingActivitiesResponse>"
    )


def short(wire: Wire, account: Account, wanted: int) -> None:
    """AWS wants so many more than it has."""
    group = account.read()
    members = "".join(
        f"<member><InstanceId>{one['InstanceId']}</InstanceId>"
        f"<AvailabilityZone>{one['AvailabilityZone']}</AvailabilityZone>"
        f"<LifecycleState>{one['LifecycleState']}</LifecycleState></member>"
        for one in group["Instances"]
    )
    fields = (
        "<AutoScalingGroupName>workers</AutoScalingGroupName><MinSize>0</MinSize>"
        f"<MaxSize>5</MaxSize><DesiredCapacity>{len(group['Instances']) + wanted}"
        "</DesiredCapacity><AvailabilityZones><member>eu-west-1a</member></AvailabilityZones>"
        "<LaunchTemplate><LaunchTemplateName>launch</LaunchTemplateName><Version>1</Version>"
        f"</LaunchTemplate><Instances>{members}</Instances>"
    )
    wire.says(
        "DescribeAutoScalingGroups",
        f'<DescribeAutoScalingGroupsResponse xmlns="{SCALING}"><DescribeAutoScalingGroupsResult>'
        f"<AutoScalingGroups><member>{fields}</member></AutoScalingGroups>"
        "</DescribeAutoScalingGroupsResult></DescribeAutoScalingGroupsResponse>",
    )


def refs(provider_ids: list[str]) -> list[NodeRef]:
    return [NodeRef(one, one) for one in provider_ids]


async def ids(provider: Provider) -> list[str]:
    return [one.provider_id for one in await provider.instances("workers")]


async def test_what_is_bought_counts_at_once_and_comes(account: Account, opened: Opened) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        await provider.increase("workers", 2)
        assert await provider.target_size("workers") == 3
        waiting = await provider.instances("workers")
        assert [one.state.value for one in waiting] == ["running", "creating", "creating"]
        assert waiting[1].provider_id == "aws:///eu-west-1a/i-placeholder-workers-1"
        assert account.size() == 3
        await provider.refresh()
        states = [one.state.value for one in await provider.instances("workers")]
        assert states == ["running"] * 3
        for one in await ids(provider):
            group = await provider.group_for_node(NodeRef(one))
            assert group is not None
            assert group.id == "workers"
    for other in ("aws:///eu-west-1a/i-0", "", "gce://x", "aws:///x", "i-1"):
        assert await provider.group_for_node(NodeRef(other)) is None


async def test_a_group_keeps_to_its_maximum_as_it_is_now(account: Account, opened: Opened) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        with pytest.raises(RefusedError, match="5 is above its maximum 4"):
            await provider.increase("workers", 4)
        account.scaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=3)
        with pytest.raises(RefusedError, match="5 is above its maximum 4"):
            await provider.increase("workers", 2)
        for count in (0, -1):
            with pytest.raises(InvalidRequestError):
                await provider.increase("workers", count)
            with pytest.raises(InvalidRequestError):
                await provider.decrease_target("workers", count)
    assert account.size() == 3


async def test_what_is_given_back_is_ended_and_not_replaced(
    account: Account, opened: Opened
) -> None:
    account.group(size=3)
    async with opened("1:4:workers") as provider:
        first, *others = await ids(provider)
        await provider.delete_nodes("workers", refs([first, first]))
        assert await provider.target_size("workers") == 2
        assert account.size() == 2
        await provider.refresh()
        assert await ids(provider) == others
        with pytest.raises(RefusedError, match="0 would be below its minimum 1"):
            await provider.delete_nodes("workers", refs(others))
        with pytest.raises(NodeGroupNotFoundError, match="no instance"):
            await provider.delete_nodes("workers", refs([others[0], first]))
    assert account.size() == 2


async def test_instances_of_other_groups_are_not_touched(account: Account, opened: Opened) -> None:
    account.group(size=2)
    account.group("other", size=2)
    async with opened("0:4:workers", "0:4:other") as provider:
        theirs = (await provider.instances("other"))[0].provider_id
        with pytest.raises(InvalidRequestError, match="is not in node group workers"):
            await provider.delete_nodes("workers", refs([theirs]))
    assert (account.size(), account.size("other")) == (2, 2)


async def test_what_never_came_is_only_not_wanted_any_more(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=2)
    async with opened("0:5:workers") as provider:
        short(wire, account, 2)
        await opened.later(provider)
        assert await provider.target_size("workers") == 4
        there = (await ids(provider))[:2]
        placeholders = (await ids(provider))[2:]
        assert placeholders == [
            "aws:///eu-west-1a/i-placeholder-workers-2",
            "aws:///eu-west-1a/i-placeholder-workers-3",
        ]
        group = await provider.group_for_node(NodeRef(placeholders[0]))
        assert group is not None
        wire.asked.clear()
        await provider.delete_nodes("workers", refs(placeholders))
        assert "TerminateInstanceInAutoScalingGroup" not in wire.asked
        assert account.size() == 2
        del wire.troubles["DescribeAutoScalingGroups"]
        await provider.refresh()
        assert await ids(provider) == there


async def test_the_target_can_fall_only_by_what_is_not_there(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=2)
    async with opened("0:5:workers") as provider:
        short(wire, account, 2)
        await opened.later(provider)
        with pytest.raises(RefusedError, match="2 instances already exist"):
            await provider.decrease_target("workers", 3)
        await provider.decrease_target("workers", 2)
        assert await provider.target_size("workers") == 2


STOCK = "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not"
QUOTA = "VcpuLimitExceeded - You have requested more vCPU capacity than your current vCPU limit"


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([("Failed", "2026-01-01T00:01:30Z", STOCK)], ErrorClass.OUT_OF_RESOURCES),
        ([("Failed", "2026-01-01T00:01:30Z", QUOTA)], ErrorClass.QUOTA),
        ([("Failed", "2026-01-01T00:01:30Z", "the image is gone")], ErrorClass.OTHER),
        (
            [
                ("InProgress", "2026-01-01T00:01:40Z", ""),
                ("Failed", "2026-01-01T00:01:30Z", STOCK),
            ],
            ErrorClass.OUT_OF_RESOURCES,
        ),
        (
            [
                ("Successful", "2026-01-01T00:01:40Z", ""),
                ("Failed", "2026-01-01T00:01:30Z", STOCK),
            ],
            None,
        ),
        ([("Failed", "2026-01-01T00:00:30Z", STOCK)], None),
        ([], None),
    ],
)
async def test_an_instance_that_cannot_be_had_says_why(
    account: Account,
    opened: Opened,
    wire: Wire,
    clock: ManualClock,
    rows: list[tuple[str, str, str]],
    kind: ErrorClass | None,
) -> None:
    account.group(size=1)
    async with opened("0:5:workers") as provider:
        await opened.later(provider)
        await provider.increase("workers", 1)  # at 00:01:01
        account.scaling.set_desired_capacity(AutoScalingGroupName="workers", DesiredCapacity=1)
        short(wire, account, 1)
        wire.says("DescribeScalingActivities", activities(*rows))
        await opened.later(provider)
        *_, last = await provider.instances("workers")
        assert last.provider_id.endswith("/i-placeholder-workers-1")
        assert (last.error.kind if last.error else None) == kind
        if kind is ErrorClass.OUT_OF_RESOURCES:
            assert last.error is not None
            assert "do not" in last.error.message


async def test_instances_that_are_going_are_not_ended_again(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=2)
    async with opened("0:5:workers") as provider:
        one, two = await ids(provider)
        short(wire, account, 0)
        body = await wire.troubles["DescribeAutoScalingGroups"]({})
        text = getattr(body, "text", "")
        going = text.replace("InService", "Terminating:Wait", 1).replace(
            "<DesiredCapacity>2", "<DesiredCapacity>1"
        )
        wire.says("DescribeAutoScalingGroups", going)
        await opened.later(provider)
        assert list(await provider.instances("workers")) == [
            Instance(one, InstanceState.DELETING),
            Instance(two, InstanceState.RUNNING),
        ]
        wire.asked.clear()
        await provider.delete_nodes("workers", refs([one]))
        assert "TerminateInstanceInAutoScalingGroup" not in wire.asked
        assert await provider.target_size("workers") == 1


async def test_aws_is_asked_once_a_minute_and_after_every_change(
    account: Account, opened: Opened, wire: Wire
) -> None:
    account.group(size=1)
    async with opened("0:4:workers") as provider:
        wire.asked.clear()
        for _ in range(5):
            await opened.later(provider, 10.0)
            await provider.template("workers")
        assert wire.asked == []
        await opened.later(provider, 10.0)
        assert wire.asked == ["DescribeAutoScalingGroups"]
        await provider.increase("workers", 1)
        wire.asked.clear()
        await provider.refresh()
        assert "DescribeAutoScalingGroups" in wire.asked


async def test_prices_are_not_asked_for(
    account: Account, opened: Opened, clock: ManualClock
) -> None:
    account.group()
    async with opened("0:4:workers") as provider:
        with pytest.raises(UnimplementedError):
            await provider.node_price(NodeRef("x"), clock.now(), clock.now())
        await provider.cleanup()
