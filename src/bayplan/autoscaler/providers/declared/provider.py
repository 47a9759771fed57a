"""A provider of declared groups without a cloud, for planning.

A group's nodes are those that its `nodeSelector` matches; a group without one has none. A node that
several groups match belongs to the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NoReturn

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.templates import (
    declared_types,
    group_of,
    price_of,
    template_from,
)
from bayplan.autoscaler.providers.descriptions import override_options
from bayplan.base.suggestions import no_such
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import selector_from_labels
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceState,
    NodeGroupNotFoundError,
    NodeRef,
    TemplateNodeInfo,
    UnimplementedError,
    prices,
)


class DeclaredProvider:
    """A provider of declared groups over existing nodes."""

    def __init__(self, declarations: Iterable[Declaration], nodes: Iterable[Node] = ()) -> None:
        self._declarations = {one.group: one for one in declarations}
        self._selectors = {
            one.group: selector_from_labels(one.node_selector)
            for one in self._declarations.values()
            if one.node_selector
        }
        self._members: dict[str, list[NodeRef]] = {group: [] for group in self._declarations}
        for node in map(NodeRef.of, nodes):
            if group := self._group(node):
                self._members[group].append(node)

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """All declared groups."""
        return [group_of(one) for one in self._declarations.values()]

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """The first group whose selector matches."""
        group = self._group(node)
        return group_of(self._declarations[group]) if group else None

    async def target_size(self, group: str) -> int:
        """Return the number of nodes of a group."""
        return len(self._members[self._find(group).group])

    async def instances(self, group: str) -> Sequence[Instance]:
        """Return the nodes that the selector of a group matches."""
        members = self._members[self._find(group).group]
        return [Instance(one.provider_id or one.name, InstanceState.RUNNING) for one in members]

    async def template(self, group: str) -> TemplateNodeInfo:
        """The template of the declaration."""
        return template_from(self._find(group))

    async def problems(self) -> Sequence[GroupProblem]:
        """Return no problems: those of templates are in the templates."""
        return ()

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The declared options, over the defaults."""
        return override_options(self._find(group).options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """The declared price of its group."""
        group = self._group(node)
        price = price_of(node, self._declarations.get(group), self._declarations)
        if price is None:
            raise UnimplementedError(f"node {node.name}: its price is unknown")
        return price * prices.hours(start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """The pod's share of the cheapest declared instance type."""
        machines = declared_types(self._declarations.values())
        return prices.pod_price(pod, machines) * prices.hours(start, end)

    async def gpu_label(self) -> str:
        """Return nothing: declarations have no GPU types."""
        return ""

    async def gpu_types(self) -> frozenset[str]:
        """Return nothing: declarations have no GPU types."""
        return frozenset()

    async def increase(self, group: str, count: int) -> None:
        """Raise UnimplementedError: there is no cloud."""
        self._refuse(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Raise UnimplementedError: there is no cloud."""
        self._refuse(group, len(nodes))

    async def decrease_target(self, group: str, count: int) -> None:
        """Raise UnimplementedError: there is no cloud."""
        self._refuse(group, count)

    async def refresh(self) -> None:
        """Do nothing: nothing is cached."""

    async def cleanup(self) -> None:
        """Do nothing: nothing is held."""

    def _find(self, group: str) -> Declaration:
        if group not in self._declarations:
            raise NodeGroupNotFoundError(no_such("node group", group, self._declarations))
        return self._declarations[group]

    def _group(self, node: NodeRef) -> str:
        matching = (name for name, one in self._selectors.items() if one.matches(node.labels))
        return next(matching, "")

    def _refuse(self, group: str, count: int) -> NoReturn:
        self._find(group)
        message = f"node group {group} is only declared: it cannot be resized by {count}"
        raise UnimplementedError(message)
