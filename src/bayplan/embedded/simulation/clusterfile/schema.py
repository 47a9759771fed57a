"""The shape of a cluster file; docs/cluster-file.md explains every field."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from bayplan.embedded.control.faults import FaultKind
from bayplan.kube.meta import Quantity
from bayplan.kube.nodes import TaintEffect

Duration = str | int | float
"""As `parse_duration` reads it; a number is seconds."""
Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=200)]
Count = Annotated[int, msgspec.Meta(ge=0, le=100_000)]


class _File(msgspec.Struct, rename="camel", kw_only=True, forbid_unknown_fields=True):
    """Base: what is not known is an error."""


class DriverFile(_File):
    """A CSI driver."""

    name: Name
    topology_key: str = "topology.kubernetes.io/zone"
    provision: Duration = 2
    attach: Duration = 3
    detach: Duration = 2
    attach_required: bool = True


class StorageClassFile(_File):
    """A storage class of one of the drivers."""

    name: Name
    driver: str
    binding: Literal["WaitForFirstConsumer", "Immediate"] = "WaitForFirstConsumer"
    reclaim: Literal["Delete", "Retain"] = "Delete"
    default: bool = False
    zones: list[str] = []


class InstanceTypeFile(_File):
    """A size of machine."""

    name: str
    cpu: Quantity = "4"
    memory: Quantity = "16Gi"
    pods: Count = 110
    ephemeral_storage: Quantity = "100Gi"
    resources: dict[str, Quantity] = {}
    price: Annotated[float, msgspec.Meta(ge=0)] = 0.0


class TaintFile(_File):
    """A taint of a group's nodes."""

    key: str
    effect: TaintEffect
    value: str = ""


class GroupDriverFile(_File):
    """A CSI driver on the nodes of a group."""

    name: str
    limit: Count | Literal["none"] = "none"
    real_limit: Count | Literal["none"] | None = None
    delay: Duration = 10
    registers: bool = True


class NodeGroupFile(_File):
    """Equal nodes."""

    name: Name
    instance_type: str
    count: Count = 0
    min: Count = 0
    max: Count = 1000
    zones: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = ("zone-a",)
    labels: dict[str, str] = {}
    taints: list[TaintFile] = []
    allocatable: dict[str, Quantity] = {}
    start: Duration = 30
    drivers: list[GroupDriverFile] = []


class FaultFile(_File):
    """A fault, from a moment on, for a while or for good."""

    kind: FaultKind
    at: Duration = 0
    for_: Duration | None = msgspec.field(name="for", default=None)
    node: str = ""
    group: str = ""
    driver: str = ""
    zone: str = ""
    delay: Duration = 300
    period: Duration = 120


class ArrivalsFile(_File):
    """Many copies of a manifest, one after the other."""

    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    over: Duration
    spread: Literal["random", "even"] = "random"


class WorkloadFile(_File):
    """Objects to create: from a file, or written here."""

    file: str = ""
    manifest: dict[str, object] | list[dict[str, object]] | None = None
    at: Duration = 0
    arrivals: ArrivalsFile | None = None


class ClusterFile(_File):
    """Everything."""

    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 1
    csi_drivers: list[DriverFile] = []
    storage_classes: list[StorageClassFile] = []
    instance_types: list[InstanceTypeFile] = []
    node_groups: list[NodeGroupFile] = []
    faults: list[FaultFile] = []
    workloads: list[WorkloadFile] = []
