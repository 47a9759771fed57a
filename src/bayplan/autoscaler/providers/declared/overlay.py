"""Overlays declarations on a provider's groups, where the cloud itself cannot have them.

A declaration names a group by its id. It overrides the provider's values (`templates`); if the
provider has no template, it is made from the declaration alone. A declaration of a group that the
provider does not have is reported as a problem, and has no effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from bayplan.autoscaler.providers.declared.declaration import Declaration
from bayplan.autoscaler.providers.declared.templates import (
    declared_types,
    overlay_template,
    price_of,
    template_from,
    within_declared,
)
from bayplan.autoscaler.providers.descriptions import override_options
from bayplan.base.suggestions import no_such
from bayplan.kube.pods import Pod
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    NodeRef,
    Provider,
    RefusedError,
    TemplateNodeInfo,
    UnimplementedError,
    prices,
)


class Declarations(Protocol):
    """A source of declarations."""

    def by_group(self) -> Mapping[str, Declaration]:
        """The current declarations by group id."""
        ...

    def problems(self) -> Sequence[GroupProblem]:
        """Conflicts between declarations."""
        ...

    async def refresh(self) -> None:
        """Wait for the declarations; ProviderUnavailableError if they cannot be read."""
        ...


ReportProblems = Callable[[Sequence[GroupProblem]], Awaitable[None]]
"""Called at the start of every loop with the problems of declarations."""


class OverlayProvider:
    """A provider with declarations over another provider."""

    def __init__(
        self, inner: Provider, declaration: Declarations, report: ReportProblems | None = None
    ) -> None:
        self._inner = inner
        self._declarations = declaration
        self._report = report

    async def groups(self) -> Sequence[CloudNodeGroup]:
        """The provider's groups, within their declared sizes."""
        return [self._narrowed(one) for one in await self._inner.groups()]

    async def group_for_node(self, node: NodeRef) -> CloudNodeGroup | None:
        """Return the group of a node, within its declared size."""
        found = await self._inner.group_for_node(node)
        return None if found is None else self._narrowed(found)

    async def target_size(self, group: str) -> int:
        """Return the inner provider's target size."""
        return await self._inner.target_size(group)

    async def instances(self, group: str) -> Sequence[Instance]:
        """Return the inner provider's instances."""
        return await self._inner.instances(group)

    async def template(self, group: str) -> TemplateNodeInfo:
        """The provider's template with the declaration, or the declaration's own."""
        declaration = self._find(group)
        if declaration is None:
            return await self._inner.template(group)
        try:
            return overlay_template(await self._inner.template(group), declaration)
        except UnimplementedError:
            return template_from(declaration)

    async def problems(self) -> Sequence[GroupProblem]:
        """The problems of the provider, and of the declarations."""
        return [*await self._inner.problems(), *await self._declaration_problems()]

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        """The provider's options with the declaration."""
        declaration = self._find(group)
        try:
            options = await self._inner.options(group, defaults)
        except UnimplementedError:
            if declaration is None or not declaration.options:
                raise
            options = defaults
        return options if declaration is None else override_options(declaration.options, options)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        """The declared price, or else the provider's."""
        group = await self._inner.group_for_node(node)
        own = None if group is None else self._find(group.id)
        price = price_of(node, own, self._declarations.by_group())
        if price is None:
            return await self._inner.node_price(node, start, end)
        return price * prices.hours(start, end)

    async def pod_price(self, pod: Pod, start: datetime, end: datetime) -> float:
        """The provider's price, or else by declared prices."""
        try:
            return await self._inner.pod_price(pod, start, end)
        except UnimplementedError:
            machines = list(declared_types(self._declarations.by_group().values()))
            if not machines:
                raise
        return prices.pod_price(pod, machines) * prices.hours(start, end)

    async def gpu_label(self) -> str:
        """Return the inner provider's GPU label."""
        return await self._inner.gpu_label()

    async def gpu_types(self) -> frozenset[str]:
        """Return the inner provider's GPU types."""
        return await self._inner.gpu_types()

    async def increase(self, group: str, count: int) -> None:
        """Increase the target size up to the declared maximum."""
        declaration = self._find(group)
        if declaration is not None and declaration.max_size is not None:
            size = await self._inner.target_size(group) + count
            if size > declaration.max_size:
                most = declaration.max_size
                raise RefusedError(
                    f"node group {group}: {size} is above its declared maximum {most}"
                )
        await self._inner.increase(group, count)

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        """Delete nodes down to the declared minimum; failed instances may always be deleted."""
        declaration = self._find(group)
        if declaration is not None and declaration.min_size:
            failed = {one.provider_id for one in await self._inner.instances(group) if one.error}
            going = sum(one.provider_id not in failed for one in nodes)
            left = await self._inner.target_size(group) - len(nodes)
            if going and left < declaration.min_size:
                raise RefusedError(
                    f"node group {group}: {left} would be below its declared minimum"
                    f" {declaration.min_size}"
                )
        await self._inner.delete_nodes(group, nodes)

    async def decrease_target(self, group: str, count: int) -> None:
        """Decrease the target size in the inner provider."""
        await self._inner.decrease_target(group, count)

    async def refresh(self) -> None:
        """Refresh the provider, and report the problems of declarations."""
        await self._inner.refresh()
        await self._declarations.refresh()
        if self._report is not None:
            await self._report(await self._declaration_problems())

    async def cleanup(self) -> None:
        """Clean up the inner provider."""
        await self._inner.cleanup()

    def _find(self, group: str) -> Declaration | None:
        return self._declarations.by_group().get(group)

    def _narrowed(self, group: CloudNodeGroup) -> CloudNodeGroup:
        declaration = self._find(group.id)
        return group if declaration is None else within_declared(group, declaration)

    async def _declaration_problems(self) -> list[GroupProblem]:
        known = {one.id for one in await self._inner.groups()}
        found = list(self._declarations.problems())
        for group, declaration in self._declarations.by_group().items():
            found += [
                GroupProblem(group, str(one), declaration.about) for one in declaration.problems
            ]
            if group not in known:
                text = f"in the cloud: {no_such('node group', group, known)}"
                found.append(GroupProblem(group, text, declaration.about))
        return found
