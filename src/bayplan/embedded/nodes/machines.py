"""Instance types, node groups and instances of the simulated cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import msgspec

from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import Taint

Cloud = Literal["sim", "aws", "gce", "azure", "openstack"]
"""The provider whose ID format nodes use."""
GROUP_LABEL = "simulation.bayplan.io/node-group"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
TYPE_LABEL = "node.kubernetes.io/instance-type"
GPU_LABEL = "simulation.bayplan.io/gpu"
"""The label of nodes with a GPU."""
REGION = "sim"

State = Literal["creating", "running", "failed"]
ErrorCode = Literal["", "OUT_OF_STOCK"]


class InstanceType(msgspec.Struct, frozen=True, kw_only=True):
    """An instance type: its resources and its price."""

    name: str
    cpu: Quantity = "4"
    memory: Quantity = "16Gi"
    pods: int = 110
    ephemeral_storage: Quantity = "100Gi"
    resources: dict[str, Quantity] = {}
    """Further resources, such as `nvidia.com/gpu`."""
    price: float = 0.0
    """Price per hour."""

    def capacity(self) -> dict[str, str]:
        """Return the capacity of a node of this type."""
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
    """The limit in CSINode; None publishes no limit."""
    real_limit: int | None = None
    """The limit of the machine; None if it has none."""
    delay: float = 10.0
    """Seconds from the node's registration to the driver's."""
    registers: bool = True


class SimulatedNodeGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A node group of equal instances."""

    name: str
    instance_type: InstanceType
    minimum: int = 0
    maximum: int = 1000
    count: int = 0
    """Number of instances at the start."""
    cloud: Cloud = "sim"
    zones: tuple[str, ...] = ("zone-a",)
    labels: dict[str, str] = {}
    taints: tuple[Taint, ...] = ()
    allocatable: dict[str, Quantity] = {}
    """Entries of `status.allocatable` beyond the resources of the type."""
    start_seconds: float = 30.0
    """Seconds from the creation of an instance to the registration of its node."""
    drivers: dict[str, GroupDriver] = {}
    options: dict[str, float | bool] = {}
    """Scaling options that differ from the autoscaler's defaults, by the field names of
    `nodegroups.GroupOptions`.
    """

    def node_labels(self, name: str, zone: str) -> dict[str, str]:
        """Return the labels of one of its nodes."""
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
        """Return the allocatable resources of one of its nodes."""
        extra = {name: str(amount) for name, amount in self.allocatable.items()}
        return self.instance_type.capacity() | extra


@dataclass(slots=True)
class SimulatedInstance:
    """An instance of the simulated cloud."""

    name: str
    group: SimulatedNodeGroup
    zone: str
    launched: float
    """When it was created, in seconds since the epoch."""
    starts: float | None
    """When its node registers; None if it never does."""
    state: State = "creating"
    error: str = ""
    """Why it could not be created; empty if it could."""
    error_code: ErrorCode = ""

    @property
    def provider_id(self) -> str:
        """The provider ID of its node."""
        return f"{self.group.cloud}://{self.group.name}/{self.name}"


def instance_of(provider_id: str) -> tuple[str, str] | None:
    """Return the group and the name of the instance of a provider ID; None if it is not ours.

    IDs of real instances of the same providers have fewer or more parts.
    """
    cloud, _, rest = provider_id.partition("://")
    group, _, name = rest.partition("/")
    ours = cloud in get_args(Cloud) and group and name and "/" not in name
    return (group, name) if ours else None
