"""Node groups and what is in them, as a cloud tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from bayplan.kube.meta import ObjectReference
from bayplan.kube.nodes import Node


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes that are bought and given back alike, between two bounds."""

    id: str
    min_size: int
    max_size: int
    debug: str = ""
    """A line about the group for people."""


@dataclass(frozen=True, slots=True)
class NodeRef:
    """A node as a cloud knows it: by its provider ID, or by what it carries."""

    provider_id: str = ""
    name: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node) -> Self:
        """What a cloud needs to know of a node."""
        meta = node.metadata
        return cls(node.spec.provider_id, node.name, dict(meta.labels), dict(meta.annotations))


class InstanceState(Enum):
    """Where an instance stands."""

    CREATING = "creating"
    RUNNING = "running"
    DELETING = "deleting"


class ErrorClass(Enum):
    """What kind of thing went wrong with an instance."""

    OUT_OF_RESOURCES = "out-of-resources"
    QUOTA = "quota"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class InstanceError:
    """Why an instance cannot be had; it stays so until it is given back."""

    kind: ErrorClass
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine of a group; its node, once there is one, has the same provider ID."""

    provider_id: str
    state: InstanceState
    error: InstanceError | None = None


@dataclass(frozen=True, slots=True)
class GroupProblem:
    """Something that is said of a group and cannot be read; it is as if it were not said."""

    group: str
    text: str
    about: ObjectReference | None = None
    """The object that says it; None if it is not an object of Kubernetes."""


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """How a group wants to be scaled; the defaults are Cluster Autoscaler's, times in seconds."""

    scale_down_utilization_threshold: float = 0.5
    scale_down_gpu_utilization_threshold: float = 0.5
    scale_down_unneeded_time: float = 600.0
    scale_down_unready_time: float = 1200.0
    max_node_provision_time: float = 900.0
    max_node_startup_time: float = 900.0
    zero_or_max_node_scaling: bool = False
    """The group is only ever empty or full: it is bought and given back as a whole."""
    ignore_daemon_sets_utilization: bool = False
