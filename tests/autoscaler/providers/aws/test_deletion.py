"""An instance is ended once and takes one off the size once, whatever is repeated or lost."""

from __future__ import annotations

from contextlib import suppress

import pytest

from bayplan.nodegroups import NodeGroupError, NodeRef, ProviderUnavailableError, RefusedError
from tests.autoscaler.providers.aws.conftest import Opened
from tests.autoscaler.providers.aws.slow_group import END, RESIZE, SlowGroup
from tests.autoscaler.providers.aws.wire import Wire

pytestmark = pytest.mark.whole

ONE, TWO, THREE = (f"i-{number}" for number in "123")


def ref(name: str) -> NodeRef:
    return NodeRef(f"aws:///eu-west-1a/{name}", name)


def three(wire: Wire, state: str = "InService") -> SlowGroup:
    group = SlowGroup({ONE: state, TWO: "InService", THREE: "InService"}, 3)
    group.behind(wire)
    return group


@pytest.mark.parametrize(("states", "activities"), [(True, True), (True, False), (False, True)])
async def test_a_bad_node_takes_one_off_the_size_in_every_loop_and_after_every_restart(
    opened: Opened, wire: Wire, *, states: bool, activities: bool
) -> None:
    group = three(wire)
    group.shows_states, group.shows_activities = states, activities
    for _ in range(3):
        async with opened("0:9:workers") as provider:
            for _ in range(3):
                await provider.delete_nodes("workers", [ref(ONE)])
                assert (group.size, group.ended) == (2, [ONE])
                await opened.later(provider)
                found = [one.state.value for one in await provider.instances("workers")]
                assert found == ["deleting", "running", "running"]
                assert await provider.target_size("workers") == 2


async def test_one_process_remembers_what_aws_shows_nowhere_yet(opened: Opened, wire: Wire) -> None:
    group = three(wire)
    group.shows_states = group.shows_activities = False
    async with opened("0:9:workers") as provider:
        for _ in range(3):
            await provider.delete_nodes("workers", [ref(ONE), ref(ONE)])
            await opened.later(provider)
        assert (group.size, group.ended) == (2, [ONE])
        await provider.delete_nodes("workers", [ref(ONE), ref(TWO)])
        assert (group.size, group.ended) == (1, [ONE, TWO])


async def test_a_termination_without_an_answer_is_not_sent_twice(
    opened: Opened, wire: Wire
) -> None:
    group = three(wire)
    group.loses_answers, group.shows_states, group.shows_activities = True, False, False
    async with opened("0:9:workers") as provider:
        with pytest.raises(ProviderUnavailableError):
            await provider.delete_nodes("workers", [ref(ONE)])
        await provider.refresh()
        with pytest.raises(ProviderUnavailableError, match="may already be terminating"):
            await provider.delete_nodes("workers", [ref(ONE)])
        group.shows_activities = True
        await opened.later(provider)
        await provider.delete_nodes("workers", [ref(ONE)])
    async with opened("0:9:workers") as provider:
        await provider.delete_nodes("workers", [ref(ONE)])
    assert (group.size, group.ended) == (2, [ONE])


@pytest.mark.parametrize("state", ["Terminating:Wait", "Terminated", "Detaching", "Detached"])
async def test_an_instance_that_leaves_is_not_subtracted(
    opened: Opened, wire: Wire, state: str
) -> None:
    group = three(wire, state)
    group.size = 2
    async with opened("0:9:workers") as provider:
        wire.asked.clear()
        await provider.delete_nodes("workers", [ref(ONE)])
    assert not {END, RESIZE} & set(wire.asked)


async def test_an_instance_that_is_starting_can_be_ended(opened: Opened, wire: Wire) -> None:
    group = three(wire, "Pending:Wait")
    async with opened("0:9:workers") as provider:
        await provider.delete_nodes("workers", [ref(ONE)])
    assert (group.size, group.ended) == (2, [ONE])


async def test_an_instance_on_standby_is_refused_and_does_not_count(
    opened: Opened, wire: Wire
) -> None:
    group = three(wire, "Standby")
    async with opened("0:9:workers") as provider:
        states = [one.state.value for one in await provider.instances("workers")]
        assert states == ["running"] * 3 + ["creating"]
        with pytest.raises(RefusedError, match="i-1 is on standby"):
            await provider.delete_nodes("workers", [ref(TWO), ref(ONE)])
        await provider.decrease_target("workers", 1)
    assert (group.size, group.ended) == (2, [])


@pytest.mark.parametrize("state", ["Warmed:Stopped", "Warmed:Running", "Warmed:Pending:Wait"])
async def test_a_warm_pool_is_neither_counted_nor_touched(
    opened: Opened, wire: Wire, state: str
) -> None:
    group = three(wire, state)
    group.size = 2
    async with opened("0:9:workers") as provider:
        assert [one.provider_id[-3:] for one in await provider.instances("workers")] == [TWO, THREE]
        assert await provider.group_for_node(ref(ONE)) is None
        with suppress(NodeGroupError):
            await provider.delete_nodes("workers", [ref(ONE)])
    assert (group.size, group.ended) == (2, [])


async def test_a_placeholder_is_taken_off_once(opened: Opened, wire: Wire) -> None:
    group = SlowGroup({ONE: "InService"}, 3)
    group.behind(wire)
    first, second = (ref(f"i-placeholder-workers-{number}") for number in (1, 2))
    async with opened("0:9:workers") as provider:
        for _ in range(2):
            await provider.delete_nodes("workers", [second])
            assert group.size == 2
        await provider.delete_nodes("workers", [first, second])
    assert (group.size, group.ended) == (1, [])
