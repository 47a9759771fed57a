"""Every story, with its gate on and off: what is promised of it, and the figures behind that."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from bayplan.kube.gates import DEFAULTS
from bayplan.lab.stories import BY_GATE, STORIES, AnyStory
from bayplan.lab.stories.all import QUOTA, REQUESTS_LIMIT
from bayplan.lab.stories.cluster import ClusterFigures

pytestmark = pytest.mark.whole


def of_story(number: int) -> pytest.MarkDecorator:
    """Mark a test of a story's figures: one worker runs all of them, and tells the story once."""
    return pytest.mark.xdist_group(f"story-{number}")


EACH_STORY = pytest.mark.parametrize(
    "story",
    [pytest.param(story, marks=of_story(story.number), id=story.title) for story in STORIES],
)


@cache
def story_figures(number: int) -> tuple[Any, Any]:
    """The figures of both takes of a story, told once for all tests."""
    return both_takes(STORIES[number - 1])


def both_takes(story: AnyStory) -> tuple[Any, Any]:
    """The figures of both takes, stepped through beside each other."""
    with story.begin(on=True) as on, story.begin(on=False) as off:
        while on.step() is not None:
            assert off.step() is not None
        assert off.step() is None
        return on.figures, off.figures


@EACH_STORY
def test_a_story_comes_out_as_promised(story: AnyStory) -> None:
    on, off = story_figures(story.number)
    assert [check.text for check in story.check(on, off) if not check.holds] == []
    assert [name for name, _ in on.rows] == [name for name, _ in off.rows]


@EACH_STORY
def test_a_story_whose_gate_does_nothing_is_not_as_promised(story: AnyStory) -> None:
    _, off = story_figures(story.number)
    assert not all(check.holds for check in story.check(off, off))


@of_story(1)
def test_attach_limit_reached_adds_all_nodes_at_once() -> None:
    on, off = story_figures(1)
    assert (on.added, on.running, on.stuck, on.failures) == (3, 36, 0, 0)
    assert off.stuck == 20
    assert on.all_ran < off.all_ran


@of_story(2)
def test_no_driver_here_uses_the_node_for_others() -> None:
    on, off = story_figures(2)
    assert on.running_in == {"workers": 20, "bare": 6}
    assert (off.running, off.waiting, off.all_ran) == (6, 20, None)


@of_story(5)
def test_queue_says_not_yet_adds_nothing_before_there_is_quota() -> None:
    on, off = story_figures(5)
    assert (on.added_before[QUOTA], on.added, on.running) == (0, 11, 12)
    assert off.added_before[QUOTA] == 11
    assert on.cost < off.cost


@of_story(6)
def test_old_limits_are_kept_and_cannot_be_requested() -> None:
    on, off = story_figures(6)
    assert (on.added, on.running, on.failures, on.answers[REQUESTS_LIMIT]) == (3, 30, 0, "refused")
    assert off.waiting == 14


@of_story(7)
def test_one_image_has_two_manifests_and_loses_one() -> None:
    on, off = story_figures(7)
    assert (on.manifests, on.served, on.left) == (2, 2, 1)
    assert (off.manifests, off.served) == (1, 1)


@of_story(3)
def test_the_same_take_gives_the_same_figures() -> None:
    assert both_takes(STORIES[2]) == story_figures(3)


def test_every_gate_has_a_story() -> None:
    assert BY_GATE.keys() == DEFAULTS.keys()
    assert all(story.gate == gate for gate, story in BY_GATE.items())


def test_a_take_can_be_left_at_any_step() -> None:
    with STORIES[0].begin(on=True) as take:
        take.step()
    figures = take.figures
    assert isinstance(figures, ClusterFigures)
    assert figures.all_ran is None


def test_cluster_files_are_inside_the_package() -> None:
    for story in STORIES:
        assert story.cluster.is_file()
        assert "bayplan/lab" in str(story.cluster)
