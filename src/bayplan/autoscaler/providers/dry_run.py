"""A dry run: what would be asked of the cloud is shown instead, a line each time that it is new.

Nothing is taken as done: the next loop decides as this one did, and shows nothing again until it
would do something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    GroupOptions,
    GroupProblem,
    Instance,
    NodeGroup,
    NodeRef,
    Provider,
    TemplateNodeInfo,
)

Show = Callable[[str, str], None]
"""Told which group, and what would be done with it."""


class DryRunProvider:
    """A cloud that answers, and of which nothing is ever bought or given back."""

    def __init__(self, provider: Provider, show: Show) -> None:
        self._provider = provider
        self._show = show
        self._shown: dict[str, str] = {}

    async def groups(self) -> Sequence[NodeGroup]:
        """All node groups."""
        return await self._provider.groups()

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The group that a node belongs to."""
        return await self._provider.group_for_node(node)

    async def target_size(self, group: str) -> int:
        """How many instances a group is meant to have."""
        return await self._provider.target_size(group)

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group."""
        return await self._provider.instances(group)

    async def template(self, group: str) -> TemplateNodeInfo:
        """What the next node of a group will look like."""
        return await self._provider.template(group)

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """How a group wants to be scaled."""
        return await self._provider.options(group, defaults)

    async def problems(self) -> Sequence[GroupProblem]:
        """What is said of groups and cannot be read."""
        return await self._provider.problems()

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """What a node costs."""
        return await self._provider.node_price(node, start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """What a pod would cost at least."""
        return await self._provider.pod_price(pod, start, end)

    async def gpu_label(self) -> str:
        """The label that says which GPU a node has."""
        return await self._provider.gpu_label()

    async def gpu_types(self) -> frozenset[str]:
        """The GPUs that can be had."""
        return await self._provider.gpu_types()

    async def increase(self, group: str, count: int) -> None:
        """Show what would be bought."""
        self._tell(group, f"would be made larger by {count}")

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Show what would be given back."""
        names = ", ".join(one.name or one.provider_id for one in nodes)
        self._tell(group, f"would give back {names}")

    async def decrease_target(self, group: str, count: int) -> None:
        """Show by how much fewer would be wanted."""
        self._tell(group, f"would be meant to have {count} fewer")

    async def refresh(self) -> None:
        """A cloud may renew what it remembers."""
        await self._provider.refresh()

    async def cleanup(self) -> None:
        """There is nothing to clean up that was not there before."""

    def _tell(self, group: str, text: str) -> None:
        if self._shown.get(group) != text:
            self._shown[group] = text
            self._show(group, text)
