"""Node groups and their instances, as a provider reports them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from bayplan.kube.meta import ObjectReference
from bayplan.kube.nodes import Node


@dataclass(frozen=True, slots=True)
class CloudNodeGroup:
    """A node group of a cloud: interchangeable nodes between a minimum and a maximum size."""

    id: str
    min_size: int
    max_size: int
    debug: str = ""
    """A description of the group for people."""
    zones: tuple[str, ...] = ()
    """All zones in which the cloud may create the next node; empty if they are unknown."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node as providers identify it: by provider ID, name, labels or annotations."""

    provider_id: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> Self:
        """Return the reference to a node."""
        meta = node.metadata
        return cls(node.spec.provider_id, node.name, dict(meta.labels), dict(meta.annotations))


class InstanceState(Enum):
    """The state of an instance."""

    CREATING = "creating"
    RUNNING = "running"
    DELETING = "deleting"


class ErrorClass(Enum):
    """The class of an instance's error."""

    OUT_OF_RESOURCES = "out-of-resources"
    QUOTA = "quota"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class InstanceError:
    """Why an instance could not be created; it lasts until the instance is deleted."""

    kind: ErrorClass
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Instance:
    """An instance of a group; its node, once registered, has the same provider ID."""

    provider_id: str
    state: InstanceState
    error: InstanceError | None = None


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """A setting of a group that cannot be read, and is ignored."""

    group: str
    text: str
    about: ObjectReference | None = None
    """The object that has the setting; None if it is not a Kubernetes object."""


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """Autoscaling options of a group; defaults are Cluster Autoscaler's, times in seconds."""

    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_unneeded_time: float = 600.0
    scale_down_unready_time: float = 1200.0
    max_node_provision_time: float = 900.0
    max_node_startup_time: float = 900.0
    zero_or_max_node_scaling: bool = False
    """The group is scaled from zero to its maximum and back, never in between."""
    ignore_daemon_sets_utilization: bool = False
