"""Auto Scaling groups as a provider.

Questions are answered from what AWS said within the last minute. Whatever changes a size asks for
the group as it is now, and says the whole size, so that saying it twice is saying it once.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from bayplan.autoscaler.providers.aws.inventory import (
    PLACEHOLDER,
    Asg,
    GroupSelection,
    Inventory,
    instance_id,
    is_going,
    read_specs,
    staying,
)
from bayplan.autoscaler.providers.aws.sdk import Limits, Sdk, new_session
from bayplan.autoscaler.providers.aws.templates import EBS_DRIVER, template
from bayplan.autoscaler.providers.descriptions import options_over
from bayplan.autoscaler.providers.informers import InstalledDrivers
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.base.suggestions import no_such
from bayplan.client import Client
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    GroupOptions,
    GroupProblem,
    Instance,
    InvalidRequestError,
    NodeGroup,
    NodeGroupError,
    NodeRef,
    NotFoundError,
    NotOfferedError,
    Provider,
    RefusedError,
    TemplateNodeInfo,
)

GPU_LABEL = "k8s.amazonaws.com/accelerator"


class Aws:
    """Answers for Auto Scaling groups."""

    def __init__(self, sdk: Sdk, inventory: Inventory, drivers: InstalledDrivers) -> None:
        self._sdk = sdk
        self._inventory = inventory
        self._drivers = drivers

    async def groups(self) -> Sequence[NodeGroup]:
        """All of them."""
        return [one.group for one in self._inventory.groups.values()]

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The group that the node's instance is in."""
        name = self._group_of(node.provider_id)
        return self._inventory.groups[name].group if name in self._inventory.groups else None

    async def target_size(self, group: str) -> int:
        """Its desired capacity."""
        return self._find(group).answer.desired_capacity

    async def instances(self, group: str) -> Sequence[Instance]:
        """Its instances, and placeholders for what it has not got."""
        return self._find(group).instances

    async def template(self, group: str) -> TemplateNodeInfo:
        """By instance type and tags."""
        found = self._find(group)
        if isinstance(found.machine, NodeGroupError):
            raise NotOfferedError(str(found.machine))
        has_ebs = EBS_DRIVER in await self._drivers.names()
        return template(found.answer, found.machine, found.said, self._sdk.region, has_ebs=has_ebs)

    async def problems(self) -> Sequence[GroupProblem]:
        """What tags say that cannot be read, and groups that cannot be had."""
        return self._inventory.problems

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """What tags say, over the defaults."""
        return options_over(self._find(group).said.options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Refuse: prices are not asked for."""
        raise NotOfferedError(f"no price of {node.name} from {start} to {end} is known")

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Refuse: prices are not asked for."""
        raise NotOfferedError(f"no price of {pod.key} from {start} to {end} is known")

    async def gpu_label(self) -> str:
        """The label that AWS's nodes with GPUs are to have."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """What groups say in their tags."""
        said = (one.said.labels.get(GPU_LABEL, "") for one in self._inventory.groups.values())
        return frozenset(filter(None, said))

    async def increase(self, group: str, count: int) -> None:
        """Want more."""
        _check_count(group, count)
        found = self._find(group)
        size = (await self._inventory.read(group)).desired_capacity + count
        if size > found.group.max_size:
            most = found.group.max_size
            raise RefusedError(f"node group {group}: {size} is above its maximum {most}")
        await self._resize(group, size)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """End instances, and want so many fewer; placeholders are only not wanted any more.

        AWS ends one at a time. If it stops in the middle, those before are gone, and the next round
        shows what is left.
        """
        found = self._find(group)
        going = list(dict.fromkeys(self._meant(found, one) for one in nodes))
        now = await self._inventory.read(group)
        there = {one.instance_id: one for one in now.instances}
        ending = [one for one in going if one in there and not is_going(there[one])]
        unborn = sum(one.startswith(PLACEHOLDER) for one in going)
        left, least = now.desired_capacity - len(ending) - unborn, found.group.min_size
        if ending and left < least:
            raise RefusedError(f"node group {group}: {left} would be below its minimum {least}")
        if unborn:
            await self._resize(group, max(len(staying(now)), now.desired_capacity - unborn))
        for one in ending:
            await self._end(group, one)

    async def decrease_target(self, group: str, count: int) -> None:
        """Want fewer of those that are not there yet."""
        _check_count(group, count)
        self._find(group)
        now = await self._inventory.read(group)
        size, there = now.desired_capacity - count, len(staying(now))
        if size < there:
            raise RefusedError(f"node group {group}: {there} instances are there already")
        await self._resize(group, size)

    async def refresh(self) -> None:
        """Ask AWS again, once a minute or after a change."""
        await self._inventory.refresh()

    async def cleanup(self) -> None:
        """Begin nothing any more."""
        self._sdk.close()

    def _find(self, group: str) -> Asg:
        if group not in self._inventory.groups:
            raise NotFoundError(no_such("node group", group, self._inventory.groups))
        return self._inventory.groups[group]

    def _group_of(self, provider_id: str) -> str:
        one = instance_id(provider_id)
        if one.startswith(PLACEHOLDER):
            return one.removeprefix(f"{PLACEHOLDER}-").rpartition("-")[0]
        return self._inventory.group_of.get(one, "")

    def _meant(self, group: Asg, node: NodeRef) -> str:
        owner = self._group_of(node.provider_id)
        if not owner:
            raise NotFoundError(f"there is no instance {node.provider_id or node.name!r}")
        if owner != group.group.id:
            said = f"{node.provider_id} is not of node group {group.group.id}"
            raise InvalidRequestError(said)
        return instance_id(node.provider_id)

    async def _resize(self, group: str, size: int) -> None:
        await self._sdk.act(
            "autoscaling",
            "set_desired_capacity",
            AutoScalingGroupName=group,
            DesiredCapacity=size,
            HonorCooldown=False,
        )
        self._inventory.resized(group, size)

    async def _end(self, group: str, instance: str) -> None:
        size = self._find(group).answer.desired_capacity - 1
        try:
            await self._sdk.act(
                "autoscaling",
                "terminate_instance_in_auto_scaling_group",
                InstanceId=instance,
                ShouldDecrementDesiredCapacity=True,
            )
        except NodeGroupError:
            self._inventory.doubt()
            raise
        self._inventory.resized(group, size)


def _check_count(group: str, count: int) -> None:
    if count <= 0:
        raise InvalidRequestError(f"node group {group}: cannot be resized by {count}")


@asynccontextmanager
async def open_provider(
    options: ProviderOptions,
    client: Client,
    environment: Mapping[str, str] = os.environ,
    limits: Limits | None = None,
    session: Any = None,
) -> AsyncIterator[Provider]:
    """Answer for the groups that the options name or describe; boto3's session may be handed in."""
    wanted = check_options(options)
    session = session or new_session()
    sdk = Sdk(session, _region(environment, session), client.clock, client.rng, limits)
    try:
        yield Aws(sdk, Inventory(sdk, wanted, client.clock), InstalledDrivers(client))
    finally:
        sdk.close()


def check_options(options: ProviderOptions) -> GroupSelection:
    """The groups that the options name or describe."""
    if options.cloud_config is not None:
        raise ProviderOptionError(
            "--cloud-config: AWS is set up by its own variables and files, as AWS_REGION,"
            " AWS_PROFILE and AWS_ENDPOINT_URL"
        )
    return read_specs(options.nodes, options.node_group_auto_discovery)


def _region(known: Mapping[str, str], session: Any) -> str:
    said = known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION")
    region = said or session.region_name
    if not region:
        raise ProviderOptionError("--cloud-provider aws: which region? set AWS_REGION")
    return str(region)
