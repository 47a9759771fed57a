"""The AWS provider: Auto Scaling groups as node groups.

Reads are answered from the inventory, at most a minute old. A change of size reads the group first
and sets the absolute size, so that repeating it has no effect.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from bayplan.autoscaler.providers.aws.api_types import AutoScalingGroup
from bayplan.autoscaler.providers.aws.inventory import FRESH, Asg, AsgInventory
from bayplan.autoscaler.providers.aws.members import (
    PLACEHOLDER,
    active_instances,
    instance_id,
    is_standby,
    placeholders,
)
from bayplan.autoscaler.providers.aws.sdk import AwsTimeouts, Sdk, ThrottledError, new_session
from bayplan.autoscaler.providers.aws.selection import GroupSelection, read_specs
from bayplan.autoscaler.providers.aws.templates import EBS_DRIVER, template
from bayplan.autoscaler.providers.descriptions import override_options
from bayplan.autoscaler.providers.informers import InstalledDrivers
from bayplan.autoscaler.providers.options import ProviderOptionError, ProviderOptions
from bayplan.base.clock import Clock
from bayplan.base.suggestions import no_such
from bayplan.client import Client
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    InvalidRequestError,
    NodeGroupError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    ProviderUnavailableError,
    RefusedError,
    TemplateNodeInfo,
    UnimplementedError,
)

GPU_LABEL = "k8s.amazonaws.com/accelerator"


class AwsProvider:
    """A provider of Auto Scaling groups."""

    def __init__(
        self, sdk: Sdk, inventory: AsgInventory, drivers: InstalledDrivers, clock: Clock
    ) -> None:
        self._sdk = sdk
        self._clock = clock
        self._unsure: dict[str, float] = {}
        """Instances whose termination AWS did not confirm, and when it was sent."""
        self._inventory = inventory
        self._drivers = drivers

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All groups."""
        return [one.group for one in self._inventory.groups.values()]

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The group of the node's instance."""
        name = self._group_of(node.provider_id)
        return self._inventory.groups[name].group if name in self._inventory.groups else None

    async def target_size(self, group: str) -> int:
        """The desired capacity of a group."""
        return self._group(group).answer.desired_capacity

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group, and placeholders for missing ones."""
        return self._group(group).instances

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template by instance type and tags."""
        found = self._group(group)
        if isinstance(found.machine, NodeGroupError):
            raise UnimplementedError(str(found.machine))
        has_ebs = EBS_DRIVER in await self._drivers.names()
        return template(found.answer, found.machine, found.tags, self._sdk.region, has_ebs=has_ebs)

    async def problems(self) -> Sequence[GroupProblem]:
        """Tags that cannot be read, and groups that do not exist."""
        return self._inventory.problems

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The options in tags, over the defaults."""
        return override_options(self._group(group).tags.options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: prices are not read from AWS."""
        raise UnimplementedError(f"no price of {node.name} from {start} to {end} is known")

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Raise UnimplementedError: prices are not read from AWS."""
        raise UnimplementedError(f"no price of {pod.key} from {start} to {end} is known")

    async def gpu_label(self) -> str:
        """The label of AWS's GPU nodes."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types in groups' tags."""
        types = (one.tags.labels.get(GPU_LABEL, "") for one in self._inventory.groups.values())
        return frozenset(filter(None, types))

    async def increase(self, group: str, count: int) -> None:
        """Increase the desired capacity."""
        _check_count(group, count)
        found = self._group(group)
        size = (await self._inventory.read(group)).desired_capacity + count
        if size > found.group.max_size:
            most = found.group.max_size
            raise RefusedError(f"node group {group}: {size} is above its maximum {most}")
        await self._resize(group, size)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Terminate instances and decrease the desired capacity; placeholders only decrease it.

        AWS terminates one at a time. If that fails in the middle, the next loop reads what is left.
        Instances that are being terminated, by any earlier call, are left alone.
        """
        found = self._group(group)
        to_delete = {self._instance_of(found, one) for one in nodes}
        now, ending = await self._inventory.read(group), await self._inventory.ending(group)
        terminating = _in_service(now, ending, to_delete)
        self._refuse_unsure(terminating)
        waiting = {instance_id(one) for one in placeholders(now, ending)}
        fewer = len(waiting & to_delete)
        left, least = now.desired_capacity - len(terminating) - fewer, found.group.min_size
        if terminating and left < least:
            raise RefusedError(f"node group {group}: {left} would be below its minimum {least}")
        if fewer:
            await self._resize(group, now.desired_capacity - fewer)
        for one in terminating:
            await self._terminate(group, one)

    async def decrease_target(self, group: str, count: int) -> None:
        """Decrease the desired capacity by instances that do not exist yet."""
        _check_count(group, count)
        self._group(group)
        now = await self._inventory.read(group)
        size = now.desired_capacity - count
        current = len(active_instances(now, await self._inventory.ending(group)))
        if size < current:
            raise RefusedError(f"node group {group}: {current} instances already exist")
        await self._resize(group, size)

    async def refresh(self) -> None:
        """Read AWS again, once a minute or after a change."""
        await self._inventory.refresh()

    async def cleanup(self) -> None:
        """Start no more calls."""
        self._sdk.close()

    def _group(self, group: str) -> Asg:
        if group not in self._inventory.groups:
            raise NodeGroupNotFoundError(no_such("node group", group, self._inventory.groups))
        return self._inventory.groups[group]

    def _group_of(self, provider_id: str) -> str:
        one = instance_id(provider_id)
        if one.startswith(PLACEHOLDER):
            return one.removeprefix(f"{PLACEHOLDER}-").rpartition("-")[0]
        return self._inventory.group_of.get(one, "")

    def _instance_of(self, group: Asg, node: NodeRef) -> str:
        owner = self._group_of(node.provider_id)
        if not owner:
            raise NodeGroupNotFoundError(f"there is no instance {node.provider_id or node.name!r}")
        if owner != group.group.id:
            message = f"{node.provider_id} is not in node group {group.group.id}"
            raise InvalidRequestError(message)
        return instance_id(node.provider_id)

    async def _resize(self, group: str, size: int) -> None:
        await self._sdk.write(
            "autoscaling",
            "set_desired_capacity",
            AutoScalingGroupName=group,
            DesiredCapacity=size,
            HonorCooldown=False,
        )
        self._inventory.resized(group, size)

    async def _terminate(self, group: str, instance: str) -> None:
        size = self._group(group).answer.desired_capacity - 1
        try:
            await self._sdk.write(
                "autoscaling",
                "terminate_instance_in_auto_scaling_group",
                InstanceId=instance,
                ShouldDecrementDesiredCapacity=True,
            )
        except ProviderUnavailableError as error:
            self._inventory.invalidate()
            if not isinstance(error, ThrottledError):
                self._unsure[instance] = self._clock.monotonic()
            raise
        except NodeGroupError:
            self._inventory.invalidate()
            raise
        self._inventory.resized(group, size, instance)

    def _refuse_unsure(self, instances: Sequence[str]) -> None:
        """Refuse to send a termination again while AWS may not list the first one yet."""
        since = self._clock.monotonic() - FRESH
        self._unsure = {one: at for one, at in self._unsure.items() if at > since}
        for one in self._unsure.keys() & set(instances):
            raise ProviderUnavailableError(f"AWS may already be terminating instance {one}")


def _in_service(group: AutoScalingGroup, ending: frozenset[str], wanted: set[str]) -> list[str]:
    """Return those of the wanted instances that count; RefusedError if one is on standby.

    AWS would subtract an instance on standby from a desired capacity that does not include it.
    """
    for one in group.instances:
        if is_standby(one) and one.instance_id in wanted:
            raise RefusedError(f"instance {one.instance_id} is on standby")
    current = active_instances(group, ending)
    return [one.instance_id for one in current if one.instance_id in wanted]


def _check_count(group: str, count: int) -> None:
    if count <= 0:
        raise InvalidRequestError(f"node group {group}: cannot be resized by {count}")


@asynccontextmanager
async def open_provider(
    options: ProviderOptions,
    client: Client,
    environment: Mapping[str, str] = os.environ,
    limits: AwsTimeouts | None = None,
    session: Any = None,
) -> AsyncIterator[Provider]:
    """Open the provider for the groups that the options select; a boto3 session may be passed."""
    wanted = check_options(options)
    session = session or new_session()
    sdk = Sdk(session, _region(environment, session), client.clock, client.rng, limits)
    try:
        inventory = AsgInventory(sdk, wanted, client.clock)
        yield AwsProvider(sdk, inventory, InstalledDrivers(client), client.clock)
    finally:
        sdk.close()


def check_options(options: ProviderOptions) -> GroupSelection:
    """Return the groups that the options select."""
    if options.cloud_config is not None:
        raise ProviderOptionError(
            "--cloud-config: AWS is configured by its own variables and files, such as AWS_REGION,"
            " AWS_PROFILE and AWS_ENDPOINT_URL"
        )
    return read_specs(options.nodes, options.node_group_auto_discovery)


def _region(known: Mapping[str, str], session: Any) -> str:
    configured = known.get("AWS_REGION") or known.get("AWS_DEFAULT_REGION")
    region = configured or session.region_name
    if not region:
        raise ProviderOptionError("--cloud-provider aws: no region; set AWS_REGION")
    return str(region)
