"""What the cloud says, read once a loop: bounds, sizes, instances, options, templates and prices.

Sizes and instances are asked every time; options, templates and prices are kept for a while. Every
question has its time, and a group that does not answer is taken as it was last: what is on its way
there must not be bought again, and nothing more is bought of it. A group that has not answered at
all yet stops every scale-up for as long as its instances may take to come. A group that is no
longer listed counts as not answering for as long: it may be listed again, and what was bought there
may come.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

import msgspec

from bayplan.base.clock import Clock
from bayplan.kube.codec import ObjectError
from bayplan.kube.validation import validate
from bayplan.nodegroups import (
    GroupOptions,
    GroupProblem,
    Instance,
    NodeGroup,
    NodeGroupError,
    NodeRef,
    NotOfferedError,
    Provider,
    QuotaExceededError,
    TemplateNodeInfo,
    UnavailableError,
)

T = TypeVar("T")
PATIENCE = 30.0
"""Seconds that a cloud has for one answer."""


async def with_timeout(question: Awaitable[T]) -> T:
    """An answer within reasonable time; UnavailableError if it does not come."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await question
    except TimeoutError:
        raise UnavailableError(f"no answer within {PATIENCE:.0f}s") from None


async def gpu_label(provider: Provider) -> str:
    """The label by which a cloud's nodes say which GPU they have; empty if it cannot say."""
    try:
        return await with_timeout(provider.gpu_label())
    except NodeGroupError:
        return ""


def code_of(error: NodeGroupError) -> str:
    """What an error is called."""
    if isinstance(error, QuotaExceededError):
        return "QUOTA_EXCEEDED"
    return "apiCallError" if isinstance(error, UnavailableError) else "cloudProviderError"


log = logging.getLogger(__name__)
AT_ONCE = 16
KEPT = 60.0
"""Seconds for which wishes, templates and prices are kept."""
AN_HOUR = timedelta(hours=1)
NOT_NAMED = "the cloud does not name it any more"


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupInfo:
    """What the cloud says of one node group."""

    group: NodeGroup
    target: int
    """How many instances it is meant to have."""
    instances: tuple[Instance, ...]
    options: GroupOptions
    template: TemplateNodeInfo | None = None
    price: float | None = None
    """What a node costs an hour."""
    template_error: str = ""
    """Why there is no template."""
    stale: str = ""
    """Why this is what the cloud said last; empty if it is what it says now."""


@dataclass(frozen=True, slots=True, eq=False)
class CloudState:
    """What all groups answered."""

    groups: Mapping[str, NodeGroupInfo] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)
    """Groups that have never answered, and why."""
    problems: tuple[GroupProblem, ...] = ()


Expects = Callable[[TemplateNodeInfo], TemplateNodeInfo]
"""Adds to a template what the node will say only once it is there."""


def as_it_is(template: TemplateNodeInfo) -> TemplateNodeInfo:
    """Nothing is added."""
    return template


class CloudReader:
    """Asks one provider."""

    def __init__(
        self,
        provider: Provider,
        defaults: GroupOptions,
        clock: Clock,
        expects: Expects = as_it_is,
    ) -> None:
        self._provider = provider
        self._expects = expects
        self._defaults = defaults
        self._clock = clock
        self._last: dict[str, NodeGroupInfo] = {}
        self._lost: dict[str, float] = {}
        """Groups that are not named any more, and since when."""
        self._kept: dict[str, tuple[float, NodeGroupInfo]] = {}
        self._limit = asyncio.Semaphore(AT_ONCE)

    async def read(self) -> CloudState:
        """Ask all groups; NodeGroupError if not even their names can be had."""
        await with_timeout(self._provider.refresh())
        groups = await with_timeout(self._provider.groups())
        answers = await asyncio.gather(*map(self._ask, groups))
        silent = {
            group.id: said for group, said in zip(groups, answers, strict=True)
            if isinstance(said, str)
        }  # fmt: skip
        lost = self._lost_groups({group.id for group in groups})
        self._last = lost | {
            said.group.id: said for said in answers if isinstance(said, NodeGroupInfo)
        }
        self._kept = {name: kept for name, kept in self._kept.items() if name in self._last}
        return CloudState(self._last, silent, await self._problems())

    def expect(self, group: str, size: int) -> None:
        """A group is being made that large: should it fall silent now, that is what it was."""
        known = self._last.get(group)
        if known is not None and known.target < size:
            self._last = {**self._last, group: replace(known, target=size)}

    def _lost_groups(self, named: set[str]) -> dict[str, NodeGroupInfo]:
        """The groups that are not named any more, as they were last."""
        now = self._clock.monotonic()
        self._lost = {name: self._lost.get(name, now) for name in self._last.keys() - named}
        return {
            name: replace(known, stale=NOT_NAMED)
            for name, known in self._last.items()
            if name in self._lost and now < self._lost[name] + known.options.max_node_provision_time
        }

    async def _ask(self, group: NodeGroup) -> NodeGroupInfo | str:
        """What a group says, or why it says nothing and never has."""
        try:
            async with self._limit:
                target = await with_timeout(self._provider.target_size(group.id))
                instances = tuple(await with_timeout(self._provider.instances(group.id)))
                if target < 0:
                    raise UnavailableError(f"it is said to have {target} instances")
                details = await self._details(group)
        except NodeGroupError as error:
            log.warning("node group %s does not answer: %s", group.id, error)
            known = self._last.get(group.id)
            why = str(error) or type(error).__name__
            return why if known is None else replace(known, group=group, stale=why)
        known = self._last.get(group.id)
        if known is not None and known.instances == instances:
            instances = known.instances
        return replace(details, group=group, target=target, instances=instances)

    async def _details(self, group: NodeGroup) -> NodeGroupInfo:
        """What seldom changes of a group: options, template and price; kept for a while."""
        now = self._clock.monotonic()
        until, known = self._kept.get(group.id, (0.0, None))
        if known is None or now >= until:
            known = await self._ask_details(group)
            self._kept[group.id] = (now + KEPT, known)
        return known

    async def _ask_details(self, group: NodeGroup) -> NodeGroupInfo:
        provider = self._provider
        said = await _offered(lambda: provider.options(group.id, self._defaults))
        info = NodeGroupInfo(group, 0, (), said or self._defaults)
        try:
            template = await _offered(lambda: provider.template(group.id))
        except NodeGroupError as error:
            return replace(info, template_error=str(error))
        wrong = None if template is None else _wrong(template)
        if template is None or wrong is not None:
            return replace(info, template_error=str(wrong or ""))
        price = await self._price(NodeRef.of(template.node), self._clock.now())
        return replace(info, template=self._expects(template), price=price)

    async def _price(self, node: NodeRef, now: datetime) -> float | None:
        try:
            said = await _offered(lambda: self._provider.node_price(node, now, now + AN_HOUR))
        except NodeGroupError as error:
            log.info("no price for %s: %s", node.name, error)
            return None
        return said if said is not None and math.isfinite(said) and said >= 0 else None

    async def _problems(self) -> tuple[GroupProblem, ...]:
        try:
            return tuple(await with_timeout(self._provider.problems()))
        except NodeGroupError as error:
            log.info("the cloud cannot say what is wrong with its groups: %s", error)
            return ()


def _wrong(template: TemplateNodeInfo) -> ObjectError | None:
    """What is wrong with a template, whatever it is called."""
    found = None
    for one in filter(None, (template.node, template.csi_node)):
        metadata = msgspec.structs.replace(one.metadata, name="template")
        found = found or validate(msgspec.structs.replace(one, metadata=metadata))
    return found


async def _offered(ask: Callable[[], Awaitable[T]]) -> T | None:
    """An answer that a cloud need not have."""
    try:
        return await with_timeout(ask())
    except NotOfferedError:
        return None
