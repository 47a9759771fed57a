"""PodGroups at the door: counts, amounts, and a queue that takes them."""

from __future__ import annotations

import pytest

from bayplan.admission.queue_index import QueueIndex
from bayplan.admission.queues import review_group
from bayplan.kube.volcano import PodGroup
from tests.admission.test_queues import denial, index, make
from tests.builders.queues import PodGroupBuilder


def group(**spec: object) -> PodGroup:
    made = PodGroupBuilder("g", "default").obj()
    for name, value in spec.items():
        setattr(made.spec, name, value)
    return made


def created(made: PodGroup, queues: QueueIndex | None = None) -> str:
    return denial(review_group(made, None, queues or index()))


@pytest.mark.parametrize("queue", ["", "default"])
def test_the_default_queue_is_always_there(queue: str) -> None:
    assert not created(group(queue=queue, min_member=3, min_resources={"cpu": "3"}))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (group(min_member=-1), "spec.minMember: -1 is not from 0"),
        (group(min_member=2**31), "spec.minMember"),
        (group(min_task_member={"w": -2}), "spec.minTaskMember['w']: -2 is not from 0"),
        (group(min_resources={"cpu": "-1"}), "spec.minResources: cpu: '-1' is negative"),
        (group(min_resources={"memory": "x"}), "spec.minResources: memory"),
        (group(queue="nobody"), "spec.queue: queue 'nobody' does not exist"),
    ],
)
def test_what_cannot_be_is_refused(made: PodGroup, text: str) -> None:
    assert text in created(made)


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown"])
def test_only_open_queues_take_groups(state: str) -> None:
    closed = make()
    closed.obj().status.state = state
    assert f"queue q is {state}, not Open" in created(group(queue="q"), index(closed))


def test_a_queue_below_a_closed_one_takes_no_groups() -> None:
    queues = index(make("top").state("Closing"), make().parent("top"))
    text = "queue q is below queue top, which is Closing, not Open"
    assert text in created(group(queue="q"), queues)


def test_a_queue_whose_state_nobody_has_written_is_open() -> None:
    fresh = make()
    fresh.obj().status.state = ""
    assert not created(group(queue="q"), index(fresh))


def test_only_leaves_take_groups() -> None:
    queues = index(make(), make("child").parent("q"))
    assert "queue q has queues below it, such as child" in created(group(queue="q"), queues)
    assert "only leaves take work" in created(group(queue="root"), queues)


def test_a_group_outlives_its_queues_closing() -> None:
    queues = index(make().state("Closed"))
    old, new = group(queue="q", min_member=3), group(queue="q", min_member=2)
    assert not denial(review_group(new, old, queues))
    assert denial(review_group(group(queue="q"), group(queue="default"), queues))


def test_minima_of_tasks_that_do_not_count_are_warned_of() -> None:
    made = group(min_member=3, min_task_member={"a": 2, "b": 2})
    (warning,) = review_group(made, None, index()).warnings
    assert "4 in all, more than minMember 3" in warning
    assert not review_group(group(min_member=4, min_task_member={"a": 4}), None, index()).warnings
