"""What pods say of their groups, and where they stand."""

from __future__ import annotations

import pytest

from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from bayplan.queues import Gate, Member, TaskStatus, gate_of, group_key_of, wants_gate
from bayplan.queues.members import is_preemptable, queue_name_of, role_of
from bayplan.queues.orders import member_key
from tests.builders import PodBuilder, make_pod

TRUE = "true"


def test_a_pod_names_its_group_or_has_that_of_its_controller_or_its_own() -> None:
    named = make_pod("p").annotation("scheduling.k8s.io/group-name", "g").obj()
    also = make_pod("p").annotation("scheduling.volcano.sh/group-name", "h").obj()
    owned = make_pod("p").owner("Job", "j", uid="job-uid").obj()
    bare = make_pod("p").uid("pod-uid").obj()
    assert [group_key_of(one) for one in (named, also, owned, bare)] == [
        "default/g",
        "default/h",
        "default/podgroup-job-uid",
        "default/podgroup-pod-uid",
    ]


def test_a_pod_names_its_queue_or_is_in_the_default_one() -> None:
    named = make_pod("p").annotation("scheduling.volcano.sh/queue-name", "q").obj()
    assert (queue_name_of(named), queue_name_of(make_pod("p").obj())) == ("q", "default")


@pytest.mark.parametrize(
    ("key", "value", "wants"),
    [
        (QUEUE_SCHEDULING_GATE, "true", True),
        ("volcano.sh/queue-allocation-gate", "true", True),
        (QUEUE_SCHEDULING_GATE, "True", False),
        (QUEUE_SCHEDULING_GATE, "", False),
        ("example.com/queue-allocation-gate", "true", False),
    ],
)
def test_only_plain_true_asks_for_the_gate(key: str, value: str, wants: bool) -> None:
    assert wants_gate(make_pod("p").annotation(key, value).obj()) is wants


def _gated(*gates: str) -> PodBuilder:
    pod = make_pod("p")
    for gate in gates:
        pod.gate(gate)
    return pod


def test_our_gate_counts_only_alone_and_asked_for() -> None:
    asked = _gated(QUEUE_SCHEDULING_GATE).annotation(QUEUE_SCHEDULING_GATE, TRUE).obj()
    both = _gated(QUEUE_SCHEDULING_GATE, "other").annotation(QUEUE_SCHEDULING_GATE, TRUE).obj()
    assert gate_of(make_pod("p").obj()) is Gate.NONE
    assert gate_of(asked) is Gate.OURS
    assert gate_of(_gated(QUEUE_SCHEDULING_GATE).obj()) is Gate.OURS_UNASKED
    assert gate_of(both) is gate_of(_gated("other").obj()) is Gate.FOREIGN


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        (make_pod("p"), TaskStatus.PENDING),
        (make_pod("p").node("n").phase("Pending"), TaskStatus.BOUND),
        (make_pod("p").node("n"), TaskStatus.RUNNING),
        (make_pod("p").node("n").terminating(), TaskStatus.RELEASING),
        (make_pod("p").terminating(), TaskStatus.RELEASING),
        (make_pod("p").phase("Succeeded").terminating(), TaskStatus.SUCCEEDED),
        (make_pod("p").phase("Failed"), TaskStatus.FAILED),
        (make_pod("p").phase("Unknown"), TaskStatus.UNKNOWN),
    ],
)
def test_a_pod_stands_where_its_object_says(pod: PodBuilder, status: TaskStatus) -> None:
    assert Member.of(pod.obj()).status is status


@pytest.mark.parametrize(
    ("said", "preemptable"), [(None, True), ("true", True), ("false", False), ("maybe", False)]
)
def test_what_is_not_plainly_preemptable_is_not(said: str | None, preemptable: bool) -> None:
    pod = make_pod("p")
    if said is not None:
        pod.annotation("volcano.sh/preemptable", said)
    assert is_preemptable(pod.obj()) is preemptable


def test_a_task_is_named_by_annotation_or_label() -> None:
    assert role_of(make_pod("p").annotation("volcano.sh/task-spec", "ps").obj()) == "ps"
    assert role_of(make_pod("p").label("volcano.sh/task-spec", "ps").obj()) == "ps"


def test_pods_come_by_priority_then_number_then_age() -> None:
    pods = [
        make_pod("job-w-10").created("2026-01-01T00:00:00Z"),
        make_pod("job-w-2").created("2026-01-02T00:00:00Z"),
        make_pod("job-x").created("2026-01-03T00:00:00Z"),
        make_pod("job-w-11").annotation("volcano.sh/task-priority", "7"),
    ]
    ordered = sorted((Member.of(one.obj()) for one in pods), key=member_key)
    assert [one.pod.name for one in ordered] == ["job-w-11", "job-w-2", "job-w-10", "job-x"]


def test_malformed_annotations_say_nothing() -> None:
    pod = make_pod("a-b-99999999999999999999").annotation("volcano.sh/task-priority", "much")
    member = Member.of(pod.obj())
    assert (member.priority, member.index) == (1, None)
