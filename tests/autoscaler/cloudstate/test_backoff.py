"""A group that fails rests longer each time, and is sound again after a long while."""

from __future__ import annotations

from datetime import datetime, timedelta

from bayplan.autoscaler.cloudstate.backoff import NodeGroupBackoff
from bayplan.autoscaler.options import ReadinessOptions
from tests.autoscaler.cluster_views import NOW


def at(minutes: float) -> datetime:
    return NOW + timedelta(minutes=minutes)


def fail(backoff: NodeGroupBackoff, minutes: float) -> float:
    """Fail at a minute; how long the group rests then, in minutes."""
    return backoff.back_off("g", at(minutes), "code", "message").seconds / 60


def test_each_failure_doubles_the_rest_up_to_the_most() -> None:
    backoff = NodeGroupBackoff(ReadinessOptions())
    assert [fail(backoff, minutes) for minutes in (0, 5, 15, 35, 65)] == [5, 10, 20, 30, 30]


def test_failures_during_a_rest_are_one() -> None:
    backoff = NodeGroupBackoff(ReadinessOptions())
    assert [fail(backoff, minutes) for minutes in (0, 1, 2)] == [5, 5, 5]
    assert backoff.backoff_status("g", at(6.9)) is not None
    assert backoff.backoff_status("g", at(7)) is None


def test_a_group_is_sound_again_after_three_hours_or_a_success() -> None:
    backoff = NodeGroupBackoff(ReadinessOptions())
    fail(backoff, 0)
    assert fail(backoff, 179) == 10
    assert fail(backoff, 179 + 180) == 5
    backoff.remove_backoff("g")
    assert backoff.backoff_status("g", at(360)) is None
    assert fail(backoff, 361) == 5


def test_one_groups_rest_is_nobody_elses() -> None:
    backoff = NodeGroupBackoff(ReadinessOptions())
    fail(backoff, 0)
    assert backoff.backoff_status("other", at(1)) is None
