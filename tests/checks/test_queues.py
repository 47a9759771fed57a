"""Queues that take no work, or can never admit what waits in them."""

from __future__ import annotations

import pytest

from bayplan.kube.meta import KubeObject
from tests.builders import QueueBuilder, make_pod, make_pod_group, make_queue
from tests.checks.clusters import OLD, codes, healthy, look, without


def waiting(queue: str, cpu: str = "1", name: str = "job") -> list[KubeObject]:
    group = make_pod_group(name).queue(queue).min_member(1)
    pod = group.member(make_pod(f"{name}-0").cpu(cpu).created(OLD))
    return [group.obj(), pod.obj()]


def errors(objects: list[KubeObject]) -> list[str]:
    """Codes, but for those about the pods themselves."""
    return [code for code in codes(objects) if not code.startswith("PodsWait")]


def test_a_group_that_its_queue_can_admit_is_no_trouble_of_queues() -> None:
    assert errors([*healthy(), *waiting("q")]) == []


def test_a_group_that_is_larger_than_its_queue() -> None:
    objects = [*healthy(), *waiting("q", cpu="11")]
    (one,) = (one for one in look(objects) if one.kind.code == "QueueNeverAdmits")
    assert (one.about, one.examples[0].detail) == (
        "q",
        "cpu 11 of 10 (1 pod such as default/job-0)",
    )
    assert "QueueNeverAdmits" not in codes([*healthy(), *waiting("q", cpu="10")])


def test_a_group_that_is_larger_than_a_queue_above_leaves_it() -> None:
    small = make_queue("small").capability(cpu="4").obj()
    below = make_queue("below").parent("small").capability(cpu="10").obj()
    objects = [*healthy(), small, below, *waiting("below", cpu="8")]
    assert "QueueNeverAdmits" in codes(objects)


def test_a_group_that_wants_more_at_least_than_its_queue_has() -> None:
    group = make_pod_group("job").queue("q").min_member(1).min_resources(cpu="11")
    pod = group.member(make_pod("job-0").cpu("1").created(OLD)).obj()
    assert "QueueNeverAdmits" in codes([*healthy(), group.obj(), pod])
    group.min_resources(cpu="10")
    assert "QueueNeverAdmits" not in codes([*healthy(), group.obj(), pod])


def test_a_full_queue_is_no_trouble_for_ever() -> None:
    running = make_pod_group("busy").queue("q").phase("Running")
    pod = running.member(make_pod("busy-0").cpu("4").node("n1").created(OLD)).obj()
    objects = [*healthy(), make_queue("q").capability(cpu="4").obj(), running.obj(), pod]
    objects = [*without(objects, "Queue"), make_queue("q").capability(cpu="4").obj()]
    assert errors([*objects, *waiting("q", cpu="2")]) == []


@pytest.mark.parametrize(
    ("queue", "code"),
    [
        (make_queue("other"), "QueueUnknown"),
        (make_queue("x").state("Closed"), "QueueClosedWithWaiting"),
        (make_queue("below").parent("x"), "QueueBroken"),
    ],
)
def test_groups_in_queues_that_take_no_work(queue: QueueBuilder, code: str) -> None:
    assert code in codes([*healthy(), queue.obj(), *waiting("x")])


def test_groups_in_a_queue_that_has_queues_below_it() -> None:
    queues = [make_queue("x").obj(), make_queue("below").parent("x").obj()]
    assert errors([*healthy(), *queues, *waiting("x")]) == ["QueueNotALeaf"]


def test_queues_in_a_circle() -> None:
    ring = [make_queue("a").parent("b").obj(), make_queue("b").parent("a").obj()]
    found = look([*healthy(), *ring])
    assert [(one.kind.code, one.about) for one in found] == [
        ("QueueBroken", "a"),
        ("QueueBroken", "b"),
    ]


def test_amounts_that_contradict_each_other() -> None:
    odd = make_queue("odd").capability(cpu="1").guarantee(cpu="2").obj()
    assert errors([*healthy(), odd]) == ["QueueContradiction"]


def test_pods_whose_group_does_not_exist() -> None:
    group = make_pod_group("ghost").queue("default")
    pod = group.member(make_pod("p").cpu("1").created(OLD)).obj()
    assert errors([*healthy(), pod]) == ["PodGroupMissing"]


def test_guarantees_beyond_all_nodes() -> None:
    much = make_queue("much").guarantee(cpu="13").obj()
    (one,) = look([*healthy(), much])
    assert (one.kind.code, one.text) == (
        "GuaranteesBeyondNodes",
        "the guarantees of queues exceed the capacity of all nodes: cpu 13 of 12",
    )
    assert codes([*healthy(), make_queue("much").guarantee(cpu="12").obj()]) == []
