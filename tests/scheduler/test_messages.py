"""Users read kube-scheduler's words, and nothing is written that is there already."""

from __future__ import annotations

import pytest

from bayplan.scheduler import messages
from tests.builders import make_pod

NOW = "2026-01-01T00:00:00Z"
LATER = "2026-01-01T00:01:00Z"


def test_events_say_what_kube_scheduler_says() -> None:
    pod = make_pod("web").namespace("shop").uid("u-1").obj()
    assert messages.scheduled(pod, "n1") == messages.Notice(
        "Normal", "Scheduled", "Binding", "Successfully assigned shop/web to n1"
    )
    assert messages.failed("0/1 nodes are available").reason == "FailedScheduling"
    assert messages.preempted(pod, "n1").text == "Preempted by pod u-1 on node n1"


@pytest.mark.parametrize("text", ["x" * 5000, "é" * 3000])
def test_a_long_message_is_cut_for_an_event(text: str) -> None:
    note = messages.failed(text).text
    assert len(note.encode()) <= 1024
    assert note.endswith(" ...")


def test_a_condition_is_written_only_if_it_says_something_new() -> None:
    pod = make_pod("p").uid("u").obj()
    first = messages.refused_condition("no room", "Unschedulable", NOW)
    patch = messages.status_patch(pod, first)
    assert patch == {
        "metadata": {"uid": "u"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no room",
                    "lastTransitionTime": NOW,
                }
            ]
        },
    }
    pod.status.conditions = [first]
    again = messages.refused_condition("no room", "Unschedulable", LATER)
    assert messages.status_patch(pod, again) is None
    other = messages.condition_change(
        pod, messages.refused_condition("still no room", "Unschedulable", LATER)
    )
    assert other is not None
    assert other.last_transition_time == NOW  # the status is the same since then


def test_a_nomination_is_written_and_taken_back() -> None:
    pod = make_pod("p").nominated("n1").obj()
    assert messages.status_patch(pod, None, "n1") is None
    assert messages.status_patch(pod, None, None) is None
    moved = messages.status_patch(pod, None, "n2")
    assert moved is not None
    assert moved["status"] == {"nominatedNodeName": "n2"}
    cleared = messages.status_patch(pod, None, "")
    assert cleared is not None
    assert cleared["status"] == {"nominatedNodeName": None}
