"""A faulty cloud: a provider around a provider, some of whose calls fail.

What the cloud does and what its customer hears are separate matters: an answer can be lost after
the cloud has acted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random
from typing import TypeVar

from bayplan.autoscaler.providers.dry_run import DryRunProvider
from bayplan.base.clock import Clock
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    Instance,
    NodeRef,
    Provider,
    ProviderUnavailableError,
    TemplateNodeInfo,
)

T = TypeVar("T")


class ProviderFault(Enum):
    """What goes wrong."""

    REFUSES = "it does not act, and says so"
    LOSES = "it acts, and the answer is lost"
    HANGS = "it does not answer for an hour"
    FORGETS = "it says that it acts, and does not"
    BREAKS = "it fails in a way that nobody thought of"


@dataclass(frozen=True, slots=True)
class FaultPeriod:
    """A fault of some calls, between two moments."""

    mood: ProviderFault
    asked: str
    """The name of the question; empty for all."""
    start: float = 0.0
    end: float = float("inf")
    chance: float = 1.0
    group: str = ""


class FaultyProvider(DryRunProvider):
    """A provider whose calls fail for a while."""

    def __init__(
        self,
        provider: Provider,
        clock: Clock,
        spells: Sequence[FaultPeriod],
        rng: Random | None = None,
    ) -> None:
        super().__init__(provider, lambda _group, _text: None)
        self._inner = provider
        self._clock = clock
        self._rng = rng or Random(1)
        self.spells = list(spells)

    async def _ask(self, name: str, group: str, ask: Callable[[], Awaitable[T]]) -> T:
        now = self._clock.monotonic()
        for spell in self.spells:
            meant = spell.asked in ("", name) and spell.group in ("", group)
            if spell.start <= now < spell.end and meant and self._rng.random() < spell.chance:
                if spell.mood is ProviderFault.HANGS:
                    await self._clock.sleep(3600)
                if spell.mood is ProviderFault.LOSES:
                    await ask()
                if spell.mood is ProviderFault.BREAKS:
                    raise ZeroDivisionError(spell.mood.value)
                raise ProviderUnavailableError(f"in a mood: {spell.mood.value}")
        return await ask()

    def _forgets(self, name: str) -> bool:
        now = self._clock.monotonic()
        spells = (one for one in self.spells if one.mood is ProviderFault.FORGETS)
        return any(one.asked == name and one.start <= now < one.end for one in spells)

    async def groups(self) -> Sequence[CloudNodeGroup]:
        return await self._ask("groups", "", self._inner.groups)

    async def target_size(self, group: str) -> int:
        return await self._ask("target_size", group, lambda: self._inner.target_size(group))

    async def instances(self, group: str) -> Sequence[Instance]:
        return await self._ask("instances", group, lambda: self._inner.instances(group))

    async def template(self, group: str) -> TemplateNodeInfo:
        return await self._ask("template", group, lambda: self._inner.template(group))

    async def options(self, group: str, defaults: GroupOptions) -> GroupOptions:
        return await self._ask("options", group, lambda: self._inner.options(group, defaults))

    async def increase(self, group: str, count: int) -> None:
        await self._ask("increase", group, lambda: self._inner.increase(group, count))

    async def delete_nodes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        if not self._forgets("delete_nodes"):
            await self._ask("delete_nodes", group, lambda: self._inner.delete_nodes(group, nodes))

    async def decrease_target(self, group: str, count: int) -> None:
        await self._ask("decrease", group, lambda: self._inner.decrease_target(group, count))

    async def refresh(self) -> None:
        await self._ask("refresh", "", self._inner.refresh)
