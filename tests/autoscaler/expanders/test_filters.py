"""Priorities come from a ConfigMap that anybody may have written."""

from __future__ import annotations

import random

import pytest

from bayplan.autoscaler.estimate.options import ExpanderChoice
from bayplan.autoscaler.expanders import ExpanderContext
from bayplan.autoscaler.expanders.filters import PrioritiesError, read_priorities
from tests.autoscaler.expanders.requests import choose, machine, names, pods, request

VIEWS = [machine(name) for name in ("spot-a", "spot-b", "on-demand", "other")]


def chosen(text: str | None, seed: int = 1) -> ExpanderChoice:
    context = ExpanderContext(random.Random(seed), priorities=text)
    asked = request(VIEWS, [pod.obj() for pod in pods(3, "1")])
    return choose("priority", asked, context)


def test_the_highest_priority_that_matches_wins() -> None:
    found = {names(chosen("10: ['.*']\n50: [spot]\n", seed))[0] for seed in range(20)}
    assert found == {"spot-a", "spot-b"}
    assert names(chosen("10: ['.*']\n50: [^on-]\n70: [gone]")) == ["on-demand"]


def test_a_group_that_nothing_matches_is_not_used_and_told_of() -> None:
    found = chosen("10: [spot-a, spot-b, on-demand]")
    assert names(found)[0] != "other"
    (note,) = found.notes
    assert note.reason == "PriorityConfigMapNotMatchedGroup"
    assert "node group other" in note.message


def test_where_nothing_matches_nothing_is_left_out() -> None:
    found = chosen("-5: ['.*']\n3: [nobody]")
    assert found.new_nodes
    assert found.notes[-1].reason == "PriorityConfigMapNoGroupMatched"


def test_without_a_config_map_nothing_is_left_out_or_told() -> None:
    assert not chosen(None).notes


@pytest.mark.parametrize(
    "text",
    ["", "[a]", "10: spot", "ten: [spot]", "10: ['(']", "{", "1.5: [a]", "10: [{a: b}]", "9" * 40],
)
def test_what_cannot_be_read_is_told_and_leaves_nothing_out(text: str) -> None:
    with pytest.raises(PrioritiesError):
        read_priorities(text)
    found = chosen(text)
    assert found.new_nodes
    assert [note.reason for note in found.notes] == ["PriorityConfigMapInvalid"]


def test_a_pattern_that_would_take_others_for_ever_is_quick() -> None:
    found = read_priorities("1: ['(a*)*b']")
    assert found.of("a" * 100_000) is None
