"""The provider of a dry run: changes are shown instead of made, each time they differ.

Nothing counts as done: the next loop decides the same, and shows nothing until its decision
differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    NodeRef,
    Provider,
    TemplateNodeInfo,
)

Show = Callable[[str, str], None]
"""Called with a group, and what would be done with it."""


class DryRunProvider:
    """A provider that reads from another one, and shows changes instead of making them."""

    def __init__(self, provider: Provider, show: Show) -> None:
        self._provider = provider
        self._show = show
        self._shown: dict[str, str] = {}

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All node groups."""
        return await self._provider.groups()

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The group that a node belongs to."""
        return await self._provider.group_for_node(node)

    async def target_size(self, group: str) -> int:
        """The target size of a group."""
        return await self._provider.target_size(group)

    async def instances(self, group: str) -> Sequence[Instance]:
        """The instances of a group."""
        return await self._provider.instances(group)

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template of a group's next node."""
        return await self._provider.template(group)

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The autoscaling options of a group."""
        return await self._provider.options(group, defaults)

    async def problems(self) -> Sequence[GroupProblem]:
        """Settings of groups that cannot be read."""
        return await self._provider.problems()

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """The price of a node."""
        return await self._provider.node_price(node, start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """The price of a pod."""
        return await self._provider.pod_price(pod, start, end)

    async def gpu_label(self) -> str:
        """The label with a node's GPU type."""
        return await self._provider.gpu_label()

    async def gpu_types(self) -> frozenset[str]:
        """The GPU types that the cloud offers."""
        return await self._provider.gpu_types()

    async def increase(self, group: str, count: int) -> None:
        """Show a scale-up."""
        self._show_change(group, f"would be scaled up by {count}")

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Show a deletion of nodes."""
        names = ", ".join(one.name or one.provider_id for one in nodes)
        self._show_change(group, f"would delete {names}")

    async def decrease_target(self, group: str, count: int) -> None:
        """Show a decrease of the target size."""
        self._show_change(group, f"target size would be decreased by {count}")

    async def refresh(self) -> None:
        """Refresh the provider."""
        await self._provider.refresh()

    async def cleanup(self) -> None:
        """Do nothing: a dry run has changed nothing."""

    def _show_change(self, group: str, text: str) -> None:
        if self._shown.get(group) != text:
            self._shown[group] = text
            self._show(group, text)
