"""Declared groups as a provider without a cloud: for planning, where nothing is bought.

A group's nodes are those that its `nodeSelector` matches; a group without one has none. A node that
several groups match belongs to the first of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NoReturn

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.templates import (
    declared_machines,
    group_of,
    price_of,
    template_from,
)
from bayplan.autoscaler.providers.descriptions import options_over
from bayplan.base.suggestions import no_such
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import selector_from_labels
from bayplan.nodegroups import (
    GroupOptions,
    GroupProblem,
    Instance,
    InstanceState,
    NodeGroup,
    NodeRef,
    NotFoundError,
    NotOfferedError,
    TemplateNodeInfo,
    pricing,
)


class DeclaredGroups:
    """Answers for declared groups over nodes that are there."""

    def __init__(self, declarations: Iterable[Declaration], nodes: Iterable[Node] = ()) -> None:
        self._said = {one.group: one for one in declarations}
        self._selectors = {
            one.group: selector_from_labels(one.node_selector)
            for one in self._said.values()
            if one.node_selector
        }
        self._members: dict[str, list[NodeRef]] = {group: [] for group in self._said}
        for node in map(NodeRef.of, nodes):
            if group := self._group(node):
                self._members[group].append(node)

    async def groups(self) -> Sequence[NodeGroup]:
        """All that are declared."""
        return [group_of(one) for one in self._said.values()]

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """The first group whose selector matches."""
        group = self._group(node)
        return group_of(self._said[group]) if group else None

    async def target_size(self, group: str) -> int:
        """As many as there are."""
        return len(self._members[self._find(group).group])

    async def instances(self, group: str) -> Sequence[Instance]:
        """Its nodes."""
        members = self._members[self._find(group).group]
        return [Instance(one.provider_id or one.name, InstanceState.RUNNING) for one in members]

    async def template(self, group: str) -> TemplateNodeInfo:
        """What the declaration says."""
        return template_from(self._find(group))

    async def problems(self) -> Sequence[GroupProblem]:
        """None: what cannot be read is the template's to tell."""
        return ()

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """What the declaration says, over the defaults."""
        return options_over(self._find(group).options, defaults)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """What the declaration of its group says."""
        group = self._group(node)
        price = price_of(node, self._said.get(group), self._said)
        if price is None:
            raise NotOfferedError(f"node {node.name}: nobody says what it costs")
        return price * pricing.hours(start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """Its share of the cheapest machine that is declared."""
        machines = declared_machines(self._said.values())
        return pricing.pod_price(pod, machines) * pricing.hours(start, end)

    async def gpu_label(self) -> str:
        """None is known."""
        return ""

    async def gpu_types(self) -> frozenset[str]:
        """None is known."""
        return frozenset()

    async def increase(self, group: str, count: int) -> None:
        """Refuse: nothing is bought here."""
        self._refuse(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Refuse: nothing is given back here."""
        self._refuse(group, len(nodes))

    async def decrease_target(self, group: str, count: int) -> None:
        """Refuse: nothing is bought here."""
        self._refuse(group, count)

    async def refresh(self) -> None:
        """Nothing can be out of date."""

    async def cleanup(self) -> None:
        """Nothing is held."""

    def _find(self, group: str) -> Declaration:
        if group not in self._said:
            raise NotFoundError(no_such("node group", group, self._said))
        return self._said[group]

    def _group(self, node: NodeRef) -> str:
        matching = (name for name, one in self._selectors.items() if one.matches(node.labels))
        return next(matching, "")

    def _refuse(self, group: str, count: int) -> NoReturn:
        self._find(group)
        raise NotOfferedError(f"node group {group} is only declared: {count} cannot be traded")
