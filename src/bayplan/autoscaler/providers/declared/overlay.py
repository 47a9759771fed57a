"""Declarations laid over the groups of a cloud, for those who cannot say it in the cloud itself.

A declaration names a group by its id. What it says counts over what the cloud says (`templates`
tells how); a template that the cloud does not offer is made of the declaration alone. A declaration
whose group the cloud does not have is a problem that is told, and changes nothing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.templates import (
    declared_machines,
    laid_over,
    narrowed,
    price_of,
    template_from,
)
from bayplan.autoscaler.providers.descriptions import options_over
from bayplan.base.suggestions import no_such
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    GroupOptions,
    GroupProblem,
    Instance,
    NodeGroup,
    NodeRef,
    NotOfferedError,
    Provider,
    RefusedError,
    TemplateNodeInfo,
    pricing,
)


class Declarations(Protocol):
    """Where declarations come from."""

    def by_group(self) -> Mapping[str, Declaration]:
        """What is declared now, by the group's id."""
        ...

    def problems(self) -> Sequence[GroupProblem]:
        """What is wrong between the declarations."""
        ...

    async def refresh(self) -> None:
        """UnavailableError if what is declared is not known."""
        ...


Tell = Callable[[Sequence[GroupProblem]], Awaitable[None]]
"""Told, before every round of questions, what is wrong with the declarations."""


class Overlay:
    """A provider with declarations over another one's answers."""

    def __init__(self, inner: Provider, said: Declarations, tell: Tell | None = None) -> None:
        self._inner = inner
        self._said = said
        self._tell = tell

    async def groups(self) -> Sequence[NodeGroup]:
        """The cloud's groups, between the bounds that are declared."""
        return [self._narrowed(one) for one in await self._inner.groups()]

    async def group_for_node(self, node: NodeRef) -> NodeGroup | None:
        """As the cloud says."""
        found = await self._inner.group_for_node(node)
        return None if found is None else self._narrowed(found)

    async def target_size(self, group: str) -> int:
        """As the cloud says."""
        return await self._inner.target_size(group)

    async def instances(self, group: str) -> Sequence[Instance]:
        """As the cloud says."""
        return await self._inner.instances(group)

    async def template(self, group: str) -> TemplateNodeInfo:
        """The cloud's, with what is declared; or of what is declared alone."""
        said = self._find(group)
        if said is None:
            return await self._inner.template(group)
        try:
            return laid_over(await self._inner.template(group), said)
        except NotOfferedError:
            return template_from(said)

    async def problems(self) -> Sequence[GroupProblem]:
        """The cloud's, and those of the declarations."""
        return [*await self._inner.problems(), *await self._wrong()]

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The cloud's, with what is declared."""
        said = self._find(group)
        try:
            options = await self._inner.options(group, defaults)
        except NotOfferedError:
            if said is None or not said.options:
                raise
            options = defaults
        return options if said is None else options_over(said.options, options)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """What is declared, or else what the cloud says."""
        group = await self._inner.group_for_node(node)
        own = None if group is None else self._find(group.id)
        price = price_of(node, own, self._said.by_group())
        if price is None:
            return await self._inner.node_price(node, start, end)
        return price * pricing.hours(start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """What the cloud says, or else by what is declared."""
        try:
            return await self._inner.pod_price(pod, start, end)
        except NotOfferedError:
            machines = list(declared_machines(self._said.by_group().values()))
            if not machines:
                raise
        return pricing.pod_price(pod, machines) * pricing.hours(start, end)

    async def gpu_label(self) -> str:
        """As the cloud says."""
        return await self._inner.gpu_label()

    async def gpu_types(self) -> frozenset[str]:
        """As the cloud says."""
        return await self._inner.gpu_types()

    async def increase(self, group: str, count: int) -> None:
        """Buy, up to the maximum that is declared."""
        said = self._find(group)
        if said is not None and said.max_size is not None:
            size = await self._inner.target_size(group) + count
            if size > said.max_size:
                raise RefusedError(
                    f"node group {group}: {size} is above its declared maximum {said.max_size}"
                )
        await self._inner.increase(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Give back, down to the minimum that is declared; what failed does not count for it."""
        said = self._find(group)
        if said is not None and said.min_size:
            failed = {one.provider_id for one in await self._inner.instances(group) if one.error}
            going = sum(one.provider_id not in failed for one in nodes)
            left = await self._inner.target_size(group) - len(nodes)
            if going and left < said.min_size:
                raise RefusedError(
                    f"node group {group}: {left} would be below its declared minimum"
                    f" {said.min_size}"
                )
        await self._inner.delete_nodes(group, nodes)

    async def decrease_target(self, group: str, count: int) -> None:
        """As the cloud does."""
        await self._inner.decrease_target(group, count)

    async def refresh(self) -> None:
        """Let the cloud renew what it remembers, and say what is wrong with the declarations."""
        await self._inner.refresh()
        await self._said.refresh()
        if self._tell is not None:
            await self._tell(await self._wrong())

    async def cleanup(self) -> None:
        """As the cloud does."""
        await self._inner.cleanup()

    def _find(self, group: str) -> Declaration | None:
        return self._said.by_group().get(group)

    def _narrowed(self, group: NodeGroup) -> NodeGroup:
        said = self._find(group.id)
        return group if said is None else narrowed(group, said)

    async def _wrong(self) -> list[GroupProblem]:
        known = {one.id for one in await self._inner.groups()}
        found = list(self._said.problems())
        for group, said in self._said.by_group().items():
            found += [GroupProblem(group, str(one), said.about) for one in said.problems]
            if group not in known:
                text = f"in the cloud, {no_such('node group', group, known)}"
                found.append(GroupProblem(group, text, said.about))
        return found
