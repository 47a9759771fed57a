"""The simulated cloud as a provider, in this process: what runs in virtual time asks it directly.

Prices are those of the instance types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime

import msgspec

from bayplan.embedded.cloud.cloud import Cloud
from bayplan.embedded.cloud.templates import template
from bayplan.embedded.csi.volumes import Driver
from bayplan.embedded.nodes import machines
from bayplan.embedded.nodes.machines import GPU_LABEL, GROUP_LABEL, TYPE_LABEL
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    ErrorClass,
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceError,
    InstanceState,
    InvalidRequestError,
    NodeGroup,
    NodeRef,
    NotFoundError,
    NotOfferedError,
    TemplateNodeInfo,
    pricing,
)
from bayplan.nodegroups.pricing import Machine


class CloudProvider:
    """Answers for one simulated cloud."""

    def __init__(self, cloud: Cloud, drivers: Mapping[str, Driver]) -> None:
        self._cloud = cloud
        self._drivers = drivers

    async def groups(self) -> Sequence[NodeGroup]:
        """All node groups."""
        return [_group(one) for one in self._cloud.groups()]

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The group of a node that is one of the cloud's instances."""
        found = self._find(node)
        return None if found is None else _group(found.group)

    async def target_size(self, group: str) -> int:
        """How many instances a group is meant to have."""
        return self._cloud.target(group)

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group, oldest first."""
        return [_instance(one) for one in self._cloud.instances_of(group)]

    async def template(self, group: str) -> TemplateNodeInfo:
        """What the next node of a group will look like."""
        return template(self._cloud.group(group), self._drivers)

    async def problems(self) -> Sequence[GroupProblem]:
        """None: a cluster file that cannot be read is refused as a whole."""
        return ()

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The defaults, but for what the cluster file says of the group."""
        own = self._cloud.group(group).options
        if not own:
            raise NotOfferedError(f"node group {group} has no options of its own")
        return msgspec.convert({**asdict(defaults), **own}, GroupOptions)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """By the hour, as its instance type says."""
        return self._type_of(node).price * pricing.hours(start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """By its share of the machine on which it comes cheapest."""
        sold = ((one.instance_type.price, one.node_allocatable()) for one in self._cloud.groups())
        price = pricing.pod_price(pod, (Machine(*one) for one in sold))
        return price * pricing.hours(start, end)

    async def gpu_label(self) -> str:
        """The label that groups with GPUs have, if they say so."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """What groups say of their GPUs."""
        labels = (one.labels for one in self._cloud.groups())
        return frozenset(one[GPU_LABEL] for one in labels if GPU_LABEL in one)

    async def increase(self, group: str, count: int) -> None:
        """Buy more."""
        self._cloud.increase(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Give instances of one group back, all of them or none."""
        wanted = self._cloud.group(group)
        going = [self._meant(one) for one in nodes]
        for one in going:
            if one.group.name != wanted.name:
                raise InvalidRequestError(f"instance {one.name} is not of node group {group}")
        self._cloud.delete(one.name for one in going)

    async def decrease_target(self, group: str, count: int) -> None:
        """Want fewer of those that do not run yet."""
        self._cloud.decrease_target(group, count)

    async def refresh(self) -> None:
        """Nothing is remembered that could be out of date."""

    async def cleanup(self) -> None:
        """Nothing is held."""

    def _meant(self, node: NodeRef) -> machines.Instance:
        """The instance that is meant: by its provider ID or, without one, by its name."""
        found = self._find(node) if node.provider_id else self._cloud.instances.get(node.name)
        if found is None:
            raise NotFoundError(f"there is no instance {node.provider_id or node.name!r}")
        return found

    def _find(self, node: NodeRef) -> machines.Instance | None:
        """The instance of exactly that provider ID."""
        found = self._cloud.instances.get(node.provider_id.rpartition("/")[2])
        return found if found is not None and found.provider_id == node.provider_id else None

    def _type_of(self, node: NodeRef) -> machines.InstanceType:
        found = self._find(node)
        if found is not None:
            return found.group.instance_type
        for group in self._cloud.groups():
            if node.labels.get(GROUP_LABEL) == group.name:
                return group.instance_type
        for group in self._cloud.groups():
            if node.labels.get(TYPE_LABEL) == group.instance_type.name:
                return group.instance_type
        raise NotFoundError(f"node {node.name or node.provider_id!r} is of no node group")


def _group(group: machines.NodeGroup) -> NodeGroup:
    zones = ", ".join(group.zones)
    return NodeGroup(
        group.name, group.minimum, group.maximum, f"{group.instance_type.name} in {zones}"
    )


def _instance(one: machines.Instance) -> Instance:
    if one.state == "failed":
        error = InstanceError(ErrorClass.OUT_OF_RESOURCES, one.error_code, one.error)
        return Instance(one.provider_id, InstanceState.CREATING, error)
    return Instance(one.provider_id, InstanceState(one.state))
