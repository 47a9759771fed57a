"""What a cloud says is taken as far as it makes sense, and what it said last where it is silent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

import pytest

from bayplan.autoscaler.cloudstate.reader import CACHE_SECONDS, NOT_LISTED, CloudReader
from bayplan.autoscaler.providers.dry_run import DryRunProvider
from bayplan.nodegroups import (
    CloudNodeGroup,
    GroupOptions,
    Instance,
    NodeRef,
    Provider,
    ProviderUnavailableError,
    TemplateNodeInfo,
    template_of,
)
from tests.builders import make_node
from tests.embedded.cloud.clouds import WORKERS, ManualClock, SimulatedCloud


class OddProvider(DryRunProvider):
    """A cloud some of whose answers make no sense."""

    def __init__(self, provider: Provider) -> None:
        super().__init__(provider, lambda _group, _text: None)
        self.target: int | None = None
        self.unanswered = False
        self.unnamed = False
        self.price = 1.0
        self.made: TemplateNodeInfo | None = None
        self.asked = 0

    async def groups(self) -> Sequence[CloudNodeGroup]:
        return [] if self.unnamed else await super().groups()

    async def target_size(self, group: str) -> int:
        return await super().target_size(group) if self.target is None else self.target

    async def instances(self, group: str) -> Sequence[Instance]:
        if self.unanswered:
            raise ProviderUnavailableError("not now")
        return await super().instances(group)

    async def template(self, group: str) -> TemplateNodeInfo:
        self.asked += 1
        return self.made or await super().template(group)

    async def node_price(self, node: NodeRef, start: datetime, end: datetime) -> float:
        return self.price


@pytest.fixture
def cloud() -> OddProvider:
    return OddProvider(SimulatedCloud([WORKERS]).provider)


@pytest.fixture
def reader(cloud: OddProvider) -> CloudReader:
    return CloudReader(cloud, GroupOptions(), ManualClock())


async def test_a_group_that_falls_silent_is_as_it_was_and_says_so(
    cloud: OddProvider, reader: CloudReader
) -> None:
    before = (await reader.read()).groups["workers"]
    cloud.unanswered = True
    after = (await reader.read()).groups["workers"]
    assert (after.target, after.instances, after.stale) == (2, before.instances, "not now")


async def test_a_group_that_falls_silent_while_it_is_made_larger_counts_as_that_large(
    cloud: OddProvider, reader: CloudReader
) -> None:
    before = await reader.read()
    reader.expect("workers", 5)
    assert before.groups["workers"].target == 2
    cloud.unanswered = True
    assert (await reader.read()).groups["workers"].target == 5
    cloud.unanswered = False
    assert (await reader.read()).groups["workers"].target == 2


async def test_a_group_that_is_not_named_any_more_is_as_it_was_until_nothing_can_come(
    cloud: OddProvider,
) -> None:
    clock = ManualClock()
    reader = CloudReader(cloud, GroupOptions(), clock)
    before = (await reader.read()).groups["workers"]
    cloud.unnamed = True
    after = (await reader.read()).groups["workers"]
    assert (after.instances, after.stale) == (before.instances, NOT_LISTED)
    cloud.unnamed = False
    assert not (await reader.read()).groups["workers"].stale
    cloud.unnamed = True
    await reader.read()
    await clock.sleep(GroupOptions().max_node_provision_time)
    assert not (await reader.read()).groups


async def test_a_group_that_has_never_answered_is_told_apart(
    cloud: OddProvider, reader: CloudReader
) -> None:
    cloud.unanswered = True
    found = await reader.read()
    assert (dict(found.groups), dict(found.unanswered)) == ({}, {"workers": "not now"})


async def test_a_size_below_zero_is_no_answer(cloud: OddProvider, reader: CloudReader) -> None:
    cloud.target = -1
    assert "-1" in (await reader.read()).unanswered["workers"]


async def test_a_template_that_makes_no_sense_is_not_used_and_told(
    cloud: OddProvider, reader: CloudReader
) -> None:
    cloud.made = template_of(make_node("Some_Name").capacity(cpu="lots").obj())
    info = (await reader.read()).groups["workers"]
    assert info.template is None
    assert "'lots'" in info.template_error


async def test_a_template_may_have_any_name(cloud: OddProvider, reader: CloudReader) -> None:
    cloud.made = template_of(make_node("Some_Name").obj())
    assert (await reader.read()).groups["workers"].template is cloud.made


@pytest.mark.parametrize("price", [math.nan, math.inf, -1.0])
async def test_what_is_no_price_is_none(
    cloud: OddProvider, reader: CloudReader, price: float
) -> None:
    cloud.price = price
    assert (await reader.read()).groups["workers"].price is None


async def test_templates_are_asked_for_once_in_a_while(cloud: OddProvider) -> None:
    clock = ManualClock()
    reader = CloudReader(cloud, GroupOptions(), clock)
    for _ in range(3):
        await reader.read()
    assert cloud.asked == 1
    await clock.sleep(CACHE_SECONDS)
    await reader.read()
    assert cloud.asked == 2
