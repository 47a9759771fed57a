"""The simulated cloud as a node group provider in this process.

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
    CloudNodeGroup,
    ErrorClass,
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceError,
    InstanceState,
    InvalidRequestError,
    NodeGroupNotFoundError,
    NodeRef,
    TemplateNodeInfo,
    UnimplementedError,
    prices,
)
from bayplan.nodegroups.prices import InstanceTypePrice


class CloudProvider:
    """The provider of one simulated cloud."""

    def __init__(self, cloud: Cloud, drivers: Mapping[str, Driver]) -> None:
        self._cloud = cloud
        self._drivers = drivers

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """Return all node groups."""
        return [_group(one) for one in self._cloud.groups()]

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """Return the group of a node that is one of the cloud's instances."""
        found = self._find(node)
        return None if found is None else _group(found.group)

    async def target_size(self, group: str) -> int:
        """Return the target size of a group."""
        return self._cloud.target(group)

    async def instances(self, group: str) -> Sequence[Instance]:
        """Return the instances of a group, oldest first."""
        return [_instance(one) for one in self._cloud.instances_of(group)]

    async def template(self, group: str) -> TemplateNodeInfo:
        """Return the template of a group's next node."""
        return template(self._cloud.group(group), self._drivers)

    async def problems(self) -> Sequence[GroupProblem]:
        """Return no problems: an invalid cluster file is refused as a whole."""
        return ()

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """Return the defaults, overridden by the cluster file."""
        own = self._cloud.group(group).options
        if not own:
            raise UnimplementedError(f"node group {group} has no options of its own")
        return msgspec.convert({**asdict(defaults), **own}, GroupOptions)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """Return the price of a node, by the hour of its instance type."""
        return self._type_of(node).price * prices.hours(start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Return the price of a pod, by its share of the cheapest machine."""
        instances = (
            (one.instance_type.price, one.node_allocatable()) for one in self._cloud.groups()
        )
        price = prices.pod_price(pod, (InstanceTypePrice(*one) for one in instances))
        return price * prices.hours(start, end)

    async def gpu_label(self) -> str:
        """Return the GPU label."""
        return GPU_LABEL

    async def gpu_types(self) -> frozenset[str]:
        """Return the GPU types of the groups."""
        labels = (one.labels for one in self._cloud.groups())
        return frozenset(one[GPU_LABEL] for one in labels if GPU_LABEL in one)

    async def increase(self, group: str, count: int) -> None:
        """Create instances."""
        self._cloud.increase(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Delete instances of one group, all of them or none."""
        wanted = self._cloud.group(group)
        going = [self._resolve(one) for one in nodes]
        for one in going:
            if one.group.name != wanted.name:
                raise InvalidRequestError(f"instance {one.name} is not of node group {group}")
        self._cloud.delete(one.name for one in going)

    async def decrease_target(self, group: str, count: int) -> None:
        """Reduce the target by instances that do not run yet."""
        self._cloud.decrease_target(group, count)

    async def refresh(self) -> None:
        """Do nothing: nothing is cached."""

    async def cleanup(self) -> None:
        """Do nothing: nothing is held."""

    def _resolve(self, node: NodeRef) -> machines.SimulatedInstance:
        """Return the instance by its provider ID or, without one, by its name."""
        found = self._find(node) if node.provider_id else self._cloud.instances.get(node.name)
        if found is None:
            raise NodeGroupNotFoundError(f"there is no instance {node.provider_id or node.name!r}")
        return found

    def _find(self, node: NodeRef) -> machines.SimulatedInstance | None:
        """Return the instance of exactly that provider ID."""
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
        raise NodeGroupNotFoundError(f"node {node.name or node.provider_id!r} is of no node group")


def _group(group: machines.SimulatedNodeGroup) -> CloudNodeGroup:
    zones = ", ".join(group.zones)
    return CloudNodeGroup(
        group.name, group.minimum, group.maximum, f"{group.instance_type.name} in {zones}"
    )


def _instance(one: machines.SimulatedInstance) -> Instance:
    if one.state == "failed":
        error = InstanceError(ErrorClass.OUT_OF_RESOURCES, one.error_code, one.error)
        return Instance(one.provider_id, InstanceState.CREATING, error)
    return Instance(one.provider_id, InstanceState(one.state))
