"""The questions themselves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bayplan.kube.pods import Pod
from bayplan.nodegroups.templates import TemplateNodeInfo
from bayplan.nodegroups.values import GroupOptions, GroupProblem, Instance, NodeGroup, NodeRef


class Provider(Protocol):
    """A cloud with node groups. Every answer may instead be one of the room's errors.

    Prices, templates and options are questions that a cloud need not answer: NotOfferedError.
    """

    async def groups(self) -> Sequence[NodeGroup]:
        """All node groups."""
        ...

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The group that a node belongs to; None if it is in none."""
        ...

    async def target_size(self, group: str) -> int:
        """How many instances a group is meant to have."""
        ...

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group: those on their way and those that failed too."""
        ...

    async def template(self, group: str) -> TemplateNodeInfo:
        """What the next node of a group will look like."""
        ...

    async def problems(self) -> Sequence[GroupProblem]:
        """What is said of groups and cannot be read, beside what their templates tell."""
        ...

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """How a group wants to be scaled, where it wants anything but the defaults."""
        ...

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """What a node, real or from a template, costs from start to end."""
        ...

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """What a pod would cost at least from start to end, by what it asks for."""
        ...

    async def gpu_label(self) -> str:
        """The label that says which GPU a node has."""
        ...

    async def gpu_types(self) -> frozenset[str]:
        """The GPUs that can be had, as values of that label."""
        ...

    async def increase(self, group: str, count: int) -> None:
        """Buy `count` more; it returns when they are ordered, not when they are there."""
        ...

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Give instances back, all of them or none; the target size falls with them."""
        ...

    async def decrease_target(self, group: str, count: int) -> None:
        """Want `count` fewer, without giving back any that is there already."""
        ...

    async def refresh(self) -> None:
        """Called before every round of questions; a cloud may renew what it remembers."""
        ...

    async def cleanup(self) -> None:
        """Called once at the end."""
        ...
