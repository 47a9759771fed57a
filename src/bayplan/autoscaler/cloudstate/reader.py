"""Reads the cloud's state once a loop: limits, sizes, instances, options, templates and prices.

Sizes and instances are read every time; options, templates and prices are cached for a minute.
Every call has a timeout. If a call for a group fails, its last state is used: its upcoming nodes
still count, and it is not scaled up. A group that has never answered stops all scale-ups for
max-node-provision-time. A group that is no longer listed counts as not answering for as long: it
may be listed again, and its new nodes may register.
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
    CloudNodeGroup,
    GroupOptions,
    GroupProblem,
    Instance,
    NodeGroupError,
    NodeRef,
    Provider,
    ProviderUnavailableError,
    QuotaExceededError,
    TemplateNodeInfo,
    UnimplementedError,
)

T = TypeVar("T")
ANSWER_TIMEOUT = 30.0
"""Timeout of one call to the provider, in seconds."""


async def with_timeout(question: Awaitable[T]) -> T:
    """Await a call to the provider; ProviderUnavailableError after the timeout."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT):
            return await question
    except TimeoutError:
        raise ProviderUnavailableError(f"no answer within {ANSWER_TIMEOUT:.0f}s") from None


async def gpu_label(provider: Provider) -> str:
    """Return the provider's label of GPU nodes; empty if it has none."""
    try:
        return await with_timeout(provider.gpu_label())
    except NodeGroupError:
        return ""


def code_of(error: NodeGroupError) -> str:
    """Return the error code, as in Cluster Autoscaler's metrics."""
    if isinstance(error, QuotaExceededError):
        return "QUOTA_EXCEEDED"
    return "apiCallError" if isinstance(error, ProviderUnavailableError) else "cloudProviderError"


log = logging.getLogger(__name__)
MAX_CONCURRENT = 16
CACHE_SECONDS = 60.0
"""Seconds for which options, templates and prices are cached."""
AN_HOUR = timedelta(hours=1)
NOT_LISTED = "the cloud provider no longer lists it"


@dataclass(frozen=True, slots=True, eq=False)
class NodeGroupInfo:
    """The state of one node group in the cloud."""

    group: CloudNodeGroup
    target: int
    """Its target size."""
    instances: tuple[Instance, ...]
    options: GroupOptions
    template: TemplateNodeInfo | None = None
    price: float | None = None
    """The hourly price of a node."""
    template_error: str = ""
    """Why there is no template."""
    stale: str = ""
    """Why this is an earlier state; empty if it is the current one."""


@dataclass(frozen=True, slots=True, eq=False)
class CloudState:
    """The state of all node groups in the cloud."""

    groups: Mapping[str, NodeGroupInfo] = field(default_factory=dict)
    unanswered: Mapping[str, str] = field(default_factory=dict)
    """Groups that have never answered, and why."""
    problems: tuple[GroupProblem, ...] = ()


AmendTemplate = Callable[[TemplateNodeInfo], TemplateNodeInfo]
"""Adds to a template what a node publishes only after it has registered."""


def unchanged(template: TemplateNodeInfo) -> TemplateNodeInfo:
    """Return the template as it is."""
    return template


class CloudReader:
    """Reads the state of one provider."""

    def __init__(
        self,
        provider: Provider,
        defaults: GroupOptions,
        clock: Clock,
        amend_template: AmendTemplate = unchanged,
    ) -> None:
        self._provider = provider
        self._amend_template = amend_template
        self._defaults = defaults
        self._clock = clock
        self._last: dict[str, NodeGroupInfo] = {}
        self._unlisted: dict[str, float] = {}
        """Groups that are no longer listed, and since when."""
        self._details: dict[str, tuple[float, NodeGroupInfo]] = {}
        self._limit = asyncio.Semaphore(MAX_CONCURRENT)

    async def read(self) -> CloudState:
        """Read all groups; NodeGroupError if they cannot be listed."""
        await with_timeout(self._provider.refresh())
        groups = await with_timeout(self._provider.groups())
        answers = await asyncio.gather(*map(self._read_group, groups))
        unanswered = {
            group.id: error for group, error in zip(groups, answers, strict=True)
            if isinstance(error, str)
        }  # fmt: skip
        unlisted = self._unlisted_groups({group.id for group in groups})
        self._last = unlisted | {
            info.group.id: info for info in answers if isinstance(info, NodeGroupInfo)
        }
        self._details = {name: kept for name, kept in self._details.items() if name in self._last}
        return CloudState(self._last, unanswered, await self._problems())

    def expect(self, group: str, size: int) -> None:
        """Note the target size of a scale-up, in case the group does not answer from now on."""
        known = self._last.get(group)
        if known is not None and known.target < size:
            self._last = {**self._last, group: replace(known, target=size)}

    def _unlisted_groups(self, listed: set[str]) -> dict[str, NodeGroupInfo]:
        """Return the groups that are no longer listed, with their last state."""
        now = self._clock.monotonic()
        self._unlisted = {
            name: self._unlisted.get(name, now) for name in self._last.keys() - listed
        }
        return {
            name: replace(known, stale=NOT_LISTED)
            for name, known in self._last.items()
            if name in self._unlisted
            and now < self._unlisted[name] + known.options.max_node_provision_time
        }

    async def _read_group(self, group: CloudNodeGroup) -> NodeGroupInfo | str:
        """Read a group's state; the error if it has never answered."""
        try:
            async with self._limit:
                target = await with_timeout(self._provider.target_size(group.id))
                instances = tuple(await with_timeout(self._provider.instances(group.id)))
                if target < 0:
                    raise ProviderUnavailableError(f"its target size is {target}")
                details = await self._cached_details(group)
        except NodeGroupError as error:
            log.warning("node group %s does not answer: %s", group.id, error)
            known = self._last.get(group.id)
            why = str(error) or type(error).__name__
            return why if known is None else replace(known, group=group, stale=why)
        known = self._last.get(group.id)
        if known is not None and known.instances == instances:
            instances = known.instances
        return replace(details, group=group, target=target, instances=instances)

    async def _cached_details(self, group: CloudNodeGroup) -> NodeGroupInfo:
        """Return options, template and price of a group, cached."""
        now = self._clock.monotonic()
        until, known = self._details.get(group.id, (0.0, None))
        if known is None or now >= until:
            known = await self._read_details(group)
            self._details[group.id] = (now + CACHE_SECONDS, known)
        return known

    async def _read_details(self, group: CloudNodeGroup) -> NodeGroupInfo:
        provider = self._provider
        options = await _optional(lambda: provider.options(group.id, self._defaults))
        info = NodeGroupInfo(group, 0, (), options or self._defaults)
        try:
            template = await _optional(lambda: provider.template(group.id))
        except NodeGroupError as error:
            return replace(info, template_error=str(error))
        wrong = None if template is None else _template_problem(template)
        if template is None or wrong is not None:
            return replace(info, template_error=str(wrong or ""))
        price = await self._price(NodeRef.of(template.node), self._clock.now())
        return replace(info, template=self._amend_template(template), price=price)

    async def _price(self, node: NodeRef, now: datetime) -> float | None:
        try:
            price = await _optional(lambda: self._provider.node_price(node, now, now + AN_HOUR))
        except NodeGroupError as error:
            log.info("no price for %s: %s", node.name, error)
            return None
        return price if price is not None and math.isfinite(price) and price >= 0 else None

    async def _problems(self) -> tuple[GroupProblem, ...]:
        try:
            return tuple(await with_timeout(self._provider.problems()))
        except NodeGroupError as error:
            log.info("cannot read problems of node groups: %s", error)
            return ()


def _template_problem(template: TemplateNodeInfo) -> ObjectError | None:
    """Return the problem of a template, whatever its name; None if it is valid."""
    found = None
    for one in filter(None, (template.node, template.csi_node)):
        metadata = msgspec.structs.replace(one.metadata, name="template")
        found = found or validate(msgspec.structs.replace(one, metadata=metadata))
    return found


async def _optional(call: Callable[[], Awaitable[T]]) -> T | None:
    """Call an optional method of the provider; None if it is not implemented."""
    try:
        return await with_timeout(call())
    except UnimplementedError:
        return None
