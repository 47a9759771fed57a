"""The agent of attach limits on a cluster: the same over HTTPS and in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bayplan.client import Client, merge, strategic
from bayplan.client.errors import NotFoundError
from bayplan.embedded.simulation.clusterfile import parse_cluster
from bayplan.kube.attachlimits import PUBLISHED_LIMITS
from bayplan.kube.attachtables import CustomLimits
from bayplan.kube.events import Event
from bayplan.kube.nodes import Node
from bayplan.kube.resources import ATTACH_LIMIT_PREFIXES
from bayplan.kube.storage import CSINode
from bayplan.lab import VirtualLab
from bayplan.node.decision import AttachLimitSettings
from bayplan.node.plugins.base import LimitPluginOptions, ReservedSlots
from tests.node.running_agent import (
    EBS_KEY,
    csinode,
    limits_of,
    node,
    overwrite,
    publishing,
    retype,
)

A, B = "bayplan-a", "bayplan-b"
PD_KEY = "attachable-volumes-gce-pd"
DISK = "disk.example.com"
DISK_KEY = f"attachable-volumes-csi-{DISK}"
SHIPPED, PROPOSED = ATTACH_LIMIT_PREFIXES
Story = Callable[[Client], Awaitable[None]]


async def every_node_by_its_type(client: Client) -> None:
    """Of all nodes, those that were there and those that come; nothing else of them changes."""
    await client.create(node(A, "m5.large"))
    async with publishing(client) as at:
        first = await at.publishes(A, {EBS_KEY: 26})
        await client.create(node(B, "e2-micro", "gce://p/z/n"))
        await at.publishes(B, {PD_KEY: 15})
        assert first.status.allocatable["cpu"] == "4"
        assert first.spec.provider_id == "aws:///eu-1a/i-1"
        assert (at.count("nodes"), at.count("published")) == (2, 2)
        assert at.count("writes_total", kind="Node") == 2


async def one_node_alone(client: Client) -> None:
    """An agent of one node lets others be."""
    await client.create(node(A, "m5.large"))
    await client.create(node(B, "m5.large"))
    async with publishing(client, node=B) as at:
        await at.publishes(B, {EBS_KEY: 26})
        assert limits_of((await client.get(Node, A)).status.allocatable) == {}


async def a_node_changes_its_type(client: Client) -> None:
    """Raised and lowered, within one loop."""
    await client.create(node(A, "m5.large"))
    async with publishing(client) as at:
        for name, count in (("c7a.48xlarge", 127), ("m5d.large", 25), ("m4.large", 39)):
            await retype(client, A, name)
            await at.publishes(A, {EBS_KEY: count})
        await retype(client, A, "zz9.plural")
        await at.publishes(A, {EBS_KEY: 26})
        assert at.count("unknown_types") == 1
        await at.until(A, lambda _: True)
    said = {(e.type, e.reason) for e in (await client.list(Event)).items if e.regarding.name == A}
    assert ("Warning", "UnknownInstanceType") in said
    assert ("Normal", "AttachLimitPublished") in said


async def a_driver_changes_its_limit(client: Client) -> None:
    """What a CSINode says is followed, up, down, and away."""
    await client.create(node(A, "any", ""))
    await client.create(csinode(A, disk_example_com=8))
    async with publishing(client) as at:
        await at.publishes(A, {DISK_KEY: 8})
        for count in (16, 4):
            entry = {"name": DISK, "allocatable": {"count": count}}
            await client.patch(CSINode, A, change=strategic({"spec": {"drivers": [entry]}}))
            await at.publishes(A, {DISK_KEY: count})
        await client.patch(CSINode, A, change=merge({"spec": {"drivers": []}}))
        await at.publishes(A, {})


async def settings_change(client: Client) -> None:
    """Prefixes, reserves, people's own limits, the gate: on, off, and on again."""
    await client.create(node(A, "m5.large", other="1", **{f"{PROPOSED}other": "3"}))
    others = {f"{PROPOSED}other": 3}
    async with publishing(client) as at:
        await at.publishes(A, {EBS_KEY: 26, **others})
        own = CustomLimits(aws_ebs={"m5*": 9})
        for settings, limits in (
            (
                AttachLimitSettings(prefixes=ATTACH_LIMIT_PREFIXES),
                {EBS_KEY: 26, f"{PROPOSED}aws-ebs": 26},
            ),
            (AttachLimitSettings(prefixes=(PROPOSED,)), {f"{PROPOSED}aws-ebs": 26}),
            (
                AttachLimitSettings(LimitPluginOptions(ReservedSlots(interfaces=3, volumes=2))),
                {EBS_KEY: 22},
            ),
            (AttachLimitSettings(LimitPluginOptions(own=own)), {EBS_KEY: 9}),
            (AttachLimitSettings(enabled=False), {}),
            (AttachLimitSettings(), {EBS_KEY: 26}),
        ):
            at.settings = settings
            await _nudge(client)
            await at.publishes(A, {**limits, **others})


async def _nudge(client: Client) -> None:
    """Let the agent look around before its minute is over."""
    found = await client.get(Node, A)
    label = {"labels": {"nudged": str(int(found.metadata.labels.get("nudged", "0")) + 1)}}
    await client.patch(Node, A, change=merge({"metadata": label}))


async def somebody_else_writes(client: Client) -> None:
    """A number that is not ours is set right, again and again, and ever more slowly."""
    await client.create(node(A, "m5.large", **{EBS_KEY: "39"}))
    async with publishing(client) as at:
        await at.publishes(A, {EBS_KEY: 26})
        for amount in ("27", "1500m", "100"):
            await overwrite(client, A, EBS_KEY, amount)
            await at.until(A, lambda found: found.status.allocatable[EBS_KEY] == "26")
        assert at.count("contested") == 1


async def wrong_numbers_of_others(client: Client) -> None:
    """What others have written wrongly is told, counted, and left alone."""
    await client.create(node(A, "any", "", **{DISK_KEY: "1500m"}))
    async with publishing(client) as at:
        await at.until(A, lambda _: at.count("unreadable") == 1)
        await retype(client, A, "other")
        found = await at.until(A, lambda one: one.metadata.labels != {})
        assert found.status.allocatable[DISK_KEY] == "1500m"
        assert PUBLISHED_LIMITS not in found.metadata.annotations


async def a_node_goes_and_comes_back(client: Client) -> None:
    """A new node of an old name is a new node."""
    await client.create(node(A, "m5.large"))
    async with publishing(client) as at:
        await at.publishes(A, {EBS_KEY: 26})
        await client.delete(Node, A)
        with pytest.raises(NotFoundError):
            await client.get(Node, A)
        await client.create(node(A, "m4.large"))
        await at.publishes(A, {EBS_KEY: 39})
        await client.create(node(B, "m5.large"))
        await at.publishes(B, {EBS_KEY: 26})


async def csinodes_of_silent_drivers(client: Client) -> None:
    """Drivers that say no limit get one; it follows the type, and is taken back."""
    rules = AttachLimitSettings(
        LimitPluginOptions(own=CustomLimits(csi={DISK: {"m5*": 9, "*": 3}})), csi_nodes=True
    )
    await client.create(node(A, "m5.large"))
    await client.create(csinode(A, ebs_csi_aws_com=None, disk_example_com=None, x_example_com=7))
    async with publishing(client, rules) as at:
        await at.csinode(A, _counts({"ebs.csi.aws.com": 26, DISK: 9, "x.example.com": 7}))
        await retype(client, A, "c4.large")
        await at.csinode(A, _counts({"ebs.csi.aws.com": 39, DISK: 3, "x.example.com": 7}))
        at.settings = replace(rules, enabled=False)
        await _nudge(client)
        await at.csinode(A, _counts({"ebs.csi.aws.com": None, DISK: None, "x.example.com": 7}))


def _counts(wanted: dict[str, int | None]) -> Callable[[CSINode], bool]:
    def holds(found: CSINode) -> bool:
        said = found.spec.drivers
        return {d.name: d.allocatable.count if d.allocatable else None for d in said} == wanted

    return holds


async def another_agent_after_this_one(client: Client) -> None:
    """Which keys are ours is written on the node, so that the next agent knows, too."""
    await client.create(node(A, "m5.large", **{f"{PROPOSED}other": "3"}))
    async with publishing(client, AttachLimitSettings(prefixes=ATTACH_LIMIT_PREFIXES)) as at:
        await at.publishes(A, {EBS_KEY: 26, f"{PROPOSED}aws-ebs": 26, f"{PROPOSED}other": 3})
    async with publishing(client, AttachLimitSettings(enabled=False)) as at:
        await at.publishes(A, {f"{PROPOSED}other": 3})


STORIES = [
    every_node_by_its_type,
    one_node_alone,
    a_node_changes_its_type,
    a_driver_changes_its_limit,
    settings_change,
    somebody_else_writes,
    wrong_numbers_of_others,
    a_node_goes_and_comes_back,
    csinodes_of_silent_drivers,
    another_agent_after_this_one,
]


@pytest.mark.wall
@pytest.mark.virtual
@pytest.mark.parametrize("story", STORIES)
async def test_the_agent(story: Story, any_client: Client) -> None:
    await story(any_client)


@pytest.mark.virtual
async def test_settings_are_looked_at_every_minute_even_where_nothing_happens() -> None:
    nobody = parse_cluster(b"seed: 1\n", "empty", Path())
    async with VirtualLab(nobody) as lab:
        client = lab.client()
        await client.create(node(A, "m5.large"))
        async with publishing(client) as at:
            at.settings = AttachLimitSettings(enabled=False)
            await lab.forward(61)
            assert limits_of((await client.get(Node, A)).status.allocatable) == {}


@pytest.mark.virtual
async def test_a_fight_that_never_ends_is_fought_every_five_minutes_and_counted_throughout() -> (
    None
):
    nobody = parse_cluster(b"seed: 1\n", "empty", Path())
    async with VirtualLab(nobody) as lab:
        client = lab.client()
        await client.create(node(A, "m5.large"))
        async with publishing(client) as at:
            for _ in range(360):
                await overwrite(client, A, EBS_KEY, "39")
                await lab.forward(10)
            before = at.count("writes_total", kind="Node")
            for _ in range(360):
                await overwrite(client, A, EBS_KEY, "39")
                await lab.forward(10)
                assert at.count("contested") == 1
            assert at.count("writes_total", kind="Node") - before <= 12
            await lab.forward(1200)
            assert at.count("contested") == 0
