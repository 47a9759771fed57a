"""Machines as a cloud sells them, instance types in node groups; and those sold, instances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint

Cloud = Literal["sim", "aws", "gce", "azure", "openstack"]
"""Whose machines they say they are: nodes' provider IDs begin so."""
GROUP_LABEL = "simulation.bayplan.io/node-group"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
TYPE_LABEL = "node.kubernetes.io/instance-type"
GPU_LABEL = "simulation.bayplan.io/gpu"
"""What groups whose machines have a GPU may say of it, among their labels."""
REGION = "sim"

State = Literal["creating", "running", "failed"]
ErrorCode = Literal["", "OUT_OF_STOCK"]


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """A size of machine, and its price."""

    name: str
    cpu: Quantity = "4"
    memory: Quantity = "16Gi"
    pods: int = 110
    ephemeral_storage: Quantity = "100Gi"
    resources: dict[str, Quantity] = {}
    """Further resources, such as `nvidia.com/gpu`."""
    price: float = 0.0
    """What an instance costs an hour."""

    def capacity(self) -> dict[str, str]:
        """The resources of a node of this type."""
        named = {
            "cpu": self.cpu,
            "memory": self.memory,
            "ephemeral-storage": self.ephemeral_storage,
            "pods": self.pods,
            **self.resources,
        }
        return {name: str(amount) for name, amount in named.items()}


class GroupDriver(msgspec.Struct, frozen=True, kw_only=True):
    """A CSI driver on the nodes of a group."""

    limit: int | None = None
    """What CSINode says; None publishes no limit."""
    real_limit: int | None = None
    """What the machine can really attach; None if there is no end to it."""
    delay: float = 10.0
    """From the node's registration to the driver's."""
    registers: bool = True


class NodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Equal machines that are bought and given back together."""

    name: str
    instance_type: InstanceType
    minimum: int = 0
    maximum: int = 1000
    count: int = 0
    """How many there are at the start."""
    cloud: Cloud = "sim"
    zones: tuple[str, ...] = ("zone-a",)
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    allocatable: dict[str, Quantity] = {}
    """What nodes publish in `status.allocatable` beyond the resources of their type."""
    start_seconds: float = 30.0
    """From the purchase to the registration of the node."""
    drivers: dict[str, GroupDriver] = {}
    options: dict[str, float | bool] = {}
    """How it wants to be scaled where that is not as an autoscaler does by default, by the names of
    `nodegroups.GroupOptions`."""

    def node_labels(self, name: str, zone: str) -> dict[str, str]:
        """The labels of one of its nodes."""
        return {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            TYPE_LABEL: self.instance_type.name,
            ZONE_LABEL: zone,
            REGION_LABEL: REGION,
            GROUP_LABEL: self.name,
            **self.labels,
        }

    def node_allocatable(self) -> dict[str, str]:
        """What the scheduler may use of one of its nodes."""
        extra = {name: str(amount) for name, amount in self.allocatable.items()}
        return self.instance_type.capacity() | extra


@dataclass(slots=True)
class Instance:
    """A machine that was bought."""

    name: str
    group: NodeGroup
    zone: str
    launched: float
    """When it was bought, in seconds since the epoch."""
    starts: float | None
    """When its node registers; None if it never does."""
    state: State = "creating"
    error: str = ""
    """Why it could not be had, if it could not."""
    error_code: ErrorCode = ""

    @property
    def provider_id(self) -> str:
        """How its node names it."""
        return f"{self.group.cloud}://{self.group.name}/{self.name}"


def sold_as(provider_id: str) -> tuple[str, str] | None:
    """The group and the name of the instance that a node names; None if it is none of ours.

    Real ones of the same clouds are told apart: they have no or more parts.
    """
    cloud, _, rest = provider_id.partition("://")
    group, _, name = rest.partition("/")
    ours = cloud in get_args(Cloud) and group and name and "/" not in name
    return (group, name) if ours else None
