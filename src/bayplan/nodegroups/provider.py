"""The provider protocol: what every cloud implements."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bayplan.kube.pods import Pod
from bayplan.nodegroups.templates import TemplateNodeInfo
from bayplan.nodegroups.values import CloudNodeGroup, GroupOptions, GroupProblem, Instance, NodeRef


class Provider(Protocol):
    """A cloud with node groups, as Cluster Autoscaler's CloudProvider.

    Every method may raise one of the package's errors. Prices, templates and options are optional:
    UnimplementedError.
    """

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All node groups."""
        ...

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The group that a node belongs to; None if it is in none."""
        ...

    async def target_size(self, group: str) -> int:
        """The target size of a group."""
        ...

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group, also those being created and those that failed."""
        ...

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template of a group's next node."""
        ...

    async def problems(self) -> Sequence[GroupProblem]:
        """Settings of groups that cannot be read, except those that templates carry."""
        ...

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The autoscaling options of a group: the defaults, and what the group overrides."""
        ...

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """The price of a node, real or from a template, from start to end."""
        ...

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """The theoretical minimum price of a pod from start to end, by its requests."""
        ...

    async def gpu_label(self) -> str:
        """The label with a node's GPU type."""
        ...

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types that the cloud offers, as values of that label."""
        ...

    async def increase(self, group: str, count: int) -> None:
        """Increase the target size by `count`; returns when requested, before nodes exist."""
        ...

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Delete instances, all or none, and decrease the target size by as many."""
        ...

    async def decrease_target(self, group: str, count: int) -> None:
        """Decrease the target size by `count` without deleting existing instances."""
        ...

    async def refresh(self) -> None:
        """Refresh cached data; called at the start of every loop."""
        ...

    async def cleanup(self) -> None:
        """Release what the provider holds; called once at the end."""
        ...
