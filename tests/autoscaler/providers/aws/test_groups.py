"""Auto Scaling groups: which are ours, and what their next node looks like."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from bayplan.autoscaler.providers.aws import open_provider
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.client import Client
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    NodeGroupNotFoundError,
    NodeRef,
    UnimplementedError,
)
from tests.autoscaler.providers.aws.account import IMAGE, TEMPLATE, Account
from tests.autoscaler.providers.aws.conftest import Opened
from tests.autoscaler.providers.aws.wire import Wire
from tests.autoscaler.providers.declared.test_overlay import limits

pytestmark = pytest.mark.whole


EBS = "ebs.csi.aws.com"


def described(names: list[str], token: str = "") -> str:
    """A page of groups that want nothing."""
    members = "".join(
        f"<member><AutoScalingGroupName>{name}</AutoScalingGroupName><MinSize>0</MinSize>"
        "<MaxSize>1</MaxSize><DesiredCapacity>0</DesiredCapacity></member>"
        for name in names
    )
    more = f"<NextToken>{token}</NextToken>" if token else ""
    page = f"<AutoScalingGroups>{members}</AutoScalingGroups>{more}"
    word = "DescribeAutoScalingGroups"
    return f"<{word}Response><{word}Result>{page}</{word}Result></{word}Response>"


async def with_driver(client: Client, name: str = EBS) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": name}}
    await client.create({**driver, "spec": {}})


async def test_groups_that_are_named_have_the_bounds_that_are_said(
    account: Account, opened: Opened
) -> None:
    account.group(size=2, least=1, most=9)
    account.group("other")
    async with opened("0:4:workers") as provider:
        zones = ("eu-west-1a", "eu-west-1b")
        described = f"Auto Scaling group in {', '.join(zones)}"
        assert await provider.groups() == [CloudNodeGroup("workers", 0, 4, described, zones)]
        assert await provider.target_size("workers") == 2
        with pytest.raises(NodeGroupNotFoundError, match="no node group 'other'"):
            await provider.target_size("other")


async def test_groups_are_found_by_their_tags(account: Account, opened: Opened) -> None:
    enabled = "k8s.io/cluster-autoscaler/enabled"
    account.group("a", tags={enabled: "", "team": "shop"}, least=1, most=7, size=1)
    account.group("b", tags={enabled: "yes", "team": "ops"})
    account.group("c", tags={"team": "shop"})
    asked = {
        (f"asg:tag={enabled}",): ["a", "b"],
        (f"asg:tag={enabled},team=shop",): ["a"],
        ("asg:tag=team=shop", "asg:tag=team=ops"): ["a", "b", "c"],
        ("asg:tag=nobody",): [],
    }
    for discovery, wanted in asked.items():
        async with opened(discovery=discovery) as provider:
            assert [one.id for one in await provider.groups()] == wanted
    async with opened("2:3:c", discovery=(f"asg:tag={enabled}",)) as provider:
        found = {one.id: (one.min_size, one.max_size) for one in await provider.groups()}
        assert found == {"a": (1, 7), "b": (0, 5), "c": (2, 3)}


async def test_many_groups_come_in_pages_and_are_asked_for_in_parts(
    opened: Opened, wire: Wire
) -> None:
    async def pages(said: dict[str, str]) -> web.Response:
        first = "NextToken" not in said
        names = range(100) if first else range(100, 120)
        return web.Response(
            text=described([f"g-{number}" for number in names], token="more" if first else ""),
            content_type="text/xml",
        )

    wire.troubles["DescribeAutoScalingGroups"] = pages
    async with opened(discovery=("asg:tag=ours",)) as provider:
        assert len(await provider.groups()) == 120
    wire.asked.clear()
    async with opened(*(f"0:1:g-{number}" for number in range(120))) as provider:
        assert len(await provider.groups()) == 120
    assert wire.asked.count("DescribeAutoScalingGroups") == 4


@pytest.mark.parametrize(
    ("nodes", "discovery", "said"),
    [
        ((), (), "set --nodes or --node-group-auto-discovery"),
        (("workers",), (), "--nodes 'workers': must be MIN:MAX:NAME"),
        (("1:x:workers",), (), "must be MIN:MAX:NAME"),
        (("3:2:workers",), (), "3 is more than 2"),
        (("1:2:a", "1:3:a"), (), "a group is listed twice"),
        ((), ("mig:x",), "must be asg:tag=KEY"),
        ((), ("asg:tag=",), "must be asg:tag=KEY"),
        ((), ("asg:tag=a,,b",), "a tag has no key"),
    ],
)
async def test_flags_that_make_no_sense_are_refused(
    client: Client, nodes: tuple[str, ...], discovery: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ProviderOptionError, match=said):
        async with open_provider(ProviderOptions("aws", None, nodes, discovery), client, {}):
            pass


async def test_without_a_region_nothing_can_be_asked(
    client: Client, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(ProviderOptionError, match="no region"):
        async with open_provider(ProviderOptions("aws", None, ("0:1:a",)), client, {}):
            pass


async def test_a_template_is_the_instance_type_with_the_tags_over_it(
    account: Account, opened: Opened
) -> None:
    account.group(
        tags={
            f"{TEMPLATE}label/pool": "a",
            f"{TEMPLATE}taint/dedicated": "shop:NoSchedule",
            f"{TEMPLATE}taint/spot": ":NoExecute",
            f"{TEMPLATE}resources/ephemeral-storage": "100Gi",
            f"{TEMPLATE}resources/pods": "29",
            f"{TEMPLATE}csi-driver/{EBS}": "20",
            f"{TEMPLATE}csi-driver/efs.csi.aws.com": "none",
            f"{TEMPLATE}csi-driver/x.example": "0",
            f"{TEMPLATE}autoscaling-options/scaledownunneededtime": "2m",
            f"{TEMPLATE}autoscaling-options/ignoredaemonsetsutilization": "true",
        }
    )
    async with opened("0:4:workers") as provider:
        found = await provider.template("workers")
        node = found.node
        assert node.status.allocatable == {
            "cpu": 2,
            "memory": "8192Mi",
            "pods": "29",
            "ephemeral-storage": "100Gi",
        }
        labels = node.metadata.labels
        assert labels["pool"] == "a"
        assert labels["node.kubernetes.io/instance-type"] == "m5.large"
        assert labels["kubernetes.io/arch"] == "amd64"
        assert labels["topology.kubernetes.io/zone"] == "eu-west-1a"
        assert labels["topology.ebs.csi.aws.com/zone"] == "eu-west-1a"
        assert labels["topology.kubernetes.io/region"] == "eu-west-1"
        assert [(one.key, one.value, one.effect) for one in node.spec.taints] == [
            ("dedicated", "shop", "NoSchedule"),
            ("spot", "", "NoExecute"),
        ]
        assert limits(found) == {EBS: 20, "efs.csi.aws.com": None, "x.example": 0}
        options = await provider.options("workers", GroupOptions())
        assert (options.scale_down_unneeded_time, options.ignore_daemon_sets_utilization) == (
            120.0,
            True,
        )
        assert await provider.problems() == []


async def test_a_type_says_how_many_volumes_where_no_tag_does(
    account: Account, opened: Opened, client: Client
) -> None:
    account.launch_template("older", InstanceType="t2.medium")
    account.launch_template("newer", InstanceType="m7i.large")
    named = {one: {"LaunchTemplateName": one, "Version": "1"} for one in ("older", "newer")}
    account.group("workers")
    account.group("older", LaunchTemplate=named["older"])
    account.group("newer", LaunchTemplate=named["newer"])
    async with opened("0:1:workers", "0:1:older", "0:1:newer") as provider:
        assert limits(await provider.template("workers")) is None
    await with_driver(client)
    async with opened("0:1:workers", "0:1:older", "0:1:newer") as provider:
        assert limits(await provider.template("workers")) == {EBS: 26}
        assert limits(await provider.template("older")) == {EBS: 39}
        assert limits(await provider.template("newer")) == {EBS: 31}


async def test_a_limit_that_cannot_be_read_is_told_and_nobody_counts_on_the_driver(
    account: Account, opened: Opened, client: Client
) -> None:
    await with_driver(client)
    account.group(
        tags={f"{TEMPLATE}csi-driver/{EBS}": "many", f"{TEMPLATE}csi-driver/x.example": "3"}
    )
    async with opened("0:4:workers") as provider:
        assert limits(await provider.template("workers")) == {"x.example": 3}
        (problem,) = await provider.problems()
        assert problem.group == "workers"
        assert f"csi-driver/{EBS}: 'many': the limit must be" in problem.text
        account.tag("workers", **{f"{TEMPLATE}csi-driver/{EBS}": "5"})
        await opened.later(provider)
        assert limits(await provider.template("workers")) == {EBS: 5, "x.example": 3}
        assert await provider.problems() == []


@pytest.mark.parametrize(
    ("tags", "said"),
    [
        ({f"{TEMPLATE}taint/a": "NoSchedule"}, ""),
        ({f"{TEMPLATE}taint/a": "x:Never"}, "the effect must be one of"),
        ({f"{TEMPLATE}label/a": "b c"}, "this is not a label"),
        ({f"{TEMPLATE}resources/cpu": "lots"}, "resources/cpu: 'lots'"),
        ({f"{TEMPLATE}autoscaling-options/scaledownunneededtime": "5"}, "needs a unit"),
    ],
)
async def test_tags_that_cannot_be_read_are_told(
    account: Account, opened: Opened, tags: dict[str, str], said: str
) -> None:
    account.group(tags=tags)
    async with opened("0:4:workers") as provider:
        found = [one.text for one in await provider.problems()]
        assert bool(found) == bool(said)
        assert said in "".join(found)
        if "effect" in said:
            with pytest.raises(UnimplementedError, match="effect"):
                await provider.template("workers")


async def test_a_group_of_several_types_promises_the_least_of_each(
    account: Account, opened: Opened, client: Client
) -> None:
    await with_driver(client)
    account.launch_template()
    overrides = [{"InstanceType": one} for one in ("m5.xlarge", "r5d.large", "c5.2xlarge")]
    template = {
        "LaunchTemplateSpecification": {"LaunchTemplateName": "launch", "Version": "$Latest"}
    }
    account.group(MixedInstancesPolicy={"LaunchTemplate": {**template, "Overrides": overrides}})
    async with opened("0:4:workers") as provider:
        found = await provider.template("workers")
        allocatable = found.node.status.allocatable
        assert (allocatable["cpu"], allocatable["memory"]) == (2, "16384Mi")
        assert limits(found) == {EBS: 25}
        assert found.node.metadata.labels["node.kubernetes.io/instance-type"] == "m5.xlarge"


async def test_launch_configurations_still_work(account: Account, opened: Opened) -> None:
    account.scaling.create_launch_configuration(
        LaunchConfigurationName="lc", ImageId=IMAGE, InstanceType="c5.xlarge"
    )
    account.group(LaunchConfigurationName="lc")
    async with opened("0:4:workers") as provider:
        assert (await provider.template("workers")).node.status.allocatable["cpu"] == 4


async def test_a_type_that_nobody_knows_offers_no_template(
    account: Account, opened: Opened
) -> None:
    account.launch_template("odd", InstanceType="m99.huge")
    account.group(LaunchTemplate={"LaunchTemplateName": "odd", "Version": "$Latest"})
    async with opened("0:4:workers") as provider:
        assert len(await provider.groups()) == 1
        with pytest.raises(UnimplementedError, match=r"m99\.huge"):
            await provider.template("workers")
        assert await provider.gpu_types() == frozenset()
        assert await provider.gpu_label() == "k8s.amazonaws.com/accelerator"


async def test_what_a_group_needs_can_stand_for_its_type(
    account: Account, opened: Opened, wire: Wire, client: Client
) -> None:
    await with_driver(client)
    account.launch_template()
    template = {
        "LaunchTemplateSpecification": {"LaunchTemplateName": "launch", "Version": "$Latest"}
    }
    needs = {"VCpuCount": {"Min": 4, "Max": 8}, "MemoryMiB": {"Min": 8000}}
    account.group(
        MixedInstancesPolicy={
            "LaunchTemplate": {**template, "Overrides": [{"InstanceRequirements": needs}]}
        }
    )
    types = "".join(
        f"<item><instanceType>{one}</instanceType></item>" for one in ("m5.2xlarge", "m5d.xlarge")
    )
    wire.says(
        "GetInstanceTypesFromInstanceRequirements",
        f"<GetInstanceTypesFromInstanceRequirementsResponse><instanceTypeSet>{types}"
        "</instanceTypeSet></GetInstanceTypesFromInstanceRequirementsResponse>",
    )
    async with opened("0:4:workers") as provider:
        found = await provider.template("workers")
        allocatable = found.node.status.allocatable
        assert (allocatable["cpu"], allocatable["memory"]) == (4, "8000Mi")
        assert limits(found) == {EBS: 25}


def mixed(*overrides: dict[str, str]) -> dict[str, Any]:
    named = {"LaunchTemplateName": "launch", "Version": "$Latest"}
    launched = {"LaunchTemplateSpecification": named, "Overrides": list(overrides)}
    return {"MixedInstancesPolicy": {"LaunchTemplate": launched}}


async def test_groups_with_weights_are_told_and_left_alone(
    account: Account, opened: Opened
) -> None:
    account.launch_template()
    types = ("m5.large", "m5.xlarge")
    even = [{"InstanceType": one, "WeightedCapacity": "1"} for one in types]
    uneven = [{"InstanceType": types[0]}, {"InstanceType": types[1], "WeightedCapacity": "2"}]
    account.group("even", 2, **mixed(*even))
    account.group("uneven", 2, **mixed(*uneven))
    async with opened("0:4:even", "0:4:uneven") as provider:
        assert [one.id for one in await provider.groups()] == ["even"]
        assert [one.state.value for one in await provider.instances("even")] == ["running"] * 2
        (problem,) = await provider.problems()
        assert problem.group == "uneven"
        assert "have weights (WeightedCapacity): its desired capacity is not a" in problem.text
        (node, *_) = account.instances("uneven")
        assert await provider.group_for_node(NodeRef(f"aws:///eu-west-1a/{node}")) is None


async def test_groups_that_count_processors_are_told_and_left_alone(
    opened: Opened, wire: Wire
) -> None:
    counted = "<DesiredCapacityType>vcpu</DesiredCapacityType></member>"
    wire.says("DescribeAutoScalingGroups", described(["cpus"]).replace("</member>", counted))
    async with opened("0:4:cpus") as provider:
        assert await provider.groups() == []
        (problem,) = await provider.problems()
        assert "it counts vcpu (DesiredCapacityType)" in problem.text
