"""The tree of queues: what each may have, and what is wrong with it."""

from __future__ import annotations

from itertools import pairwise
from math import inf

import pytest

from bayplan.kube.volcano import Queue
from bayplan.queues import QueueTree, Resources, WaitCode, read_amounts
from bayplan.queues.tree import MAX_DEPTH
from tests.builders import make_queue


def _texts(tree: QueueTree) -> dict[str, str]:
    return {problem.queue: problem.text for problem in tree.problems}


def test_root_and_default_are_there_whether_or_not_somebody_made_them() -> None:
    tree = QueueTree.of()
    assert tree.refusal("default") is None
    assert tree.path("default") == ("default", "root")
    assert tree.nodes["default"].quota.real_capability.rest == inf


def test_without_a_total_quota_alone_limits() -> None:
    tree = QueueTree.of([make_queue("a").capability(cpu="4").obj()])
    assert tree.nodes["a"].quota.real_capability == Resources({"cpu": 4000}, inf)


def test_a_child_inherits_limits_that_it_does_not_name() -> None:
    tree = QueueTree.of(
        [
            make_queue("team").capability(cpu="10", memory="10Gi").obj(),
            make_queue("a").parent("team").capability(cpu="4").obj(),
        ]
    )
    quota = tree.nodes["a"].quota
    assert quota.capability["memory"] == 10 * 2**30
    assert quota.real_capability["cpu"] == 4000


def test_what_is_kept_for_siblings_cannot_be_had() -> None:
    tree = QueueTree.of(
        [
            make_queue("team").capability(cpu="10").obj(),
            make_queue("a").parent("team").guarantee(cpu="3").obj(),
            make_queue("b").parent("team").guarantee(cpu="4").obj(),
        ]
    )
    assert tree.nodes["a"].quota.real_capability["cpu"] == 6000
    assert tree.nodes["b"].quota.real_capability["cpu"] == 7000


def test_flat_queues_share_a_total_and_are_guaranteed_their_part() -> None:
    queues = [
        make_queue("a").guarantee(cpu="2").deserved(cpu="9").obj(),
        make_queue("b").guarantee(cpu="3").obj(),
    ]
    tree = QueueTree.of(queues, total=read_amounts({"cpu": "8"}), hierarchy=False)
    quota = tree.nodes["a"].quota
    assert (quota.real_capability["cpu"], quota.deserved["cpu"]) == (5000, 5000)
    assert tree.nodes["b"].quota.deserved["cpu"] == 3000


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (make_queue("bad").parent("gone").obj(), "the parent gone of bad does not exist"),
        (make_queue("bad").parent("bad").obj(), "the parents of bad lead back to it"),
        (make_queue("bad").capability(cpu="-1").obj(), "cpu: '-1' is negative"),
        (make_queue("bad").guarantee(memory="much").obj(), "memory: quantity 'much'"),
    ],
)
def test_a_queue_that_cannot_be_reckoned_with_takes_no_work_and_the_others_go_on(
    queue: Queue, text: str
) -> None:
    tree = QueueTree.of([queue, make_queue("good").obj()])
    refusal = tree.refusal("bad")
    assert refusal is not None
    assert refusal.code is WaitCode.BROKEN_QUEUE
    assert text in _texts(tree)["bad"]
    assert tree.refusal("good") is None


def test_queues_in_a_cycle_and_below_it_take_no_work() -> None:
    tree = QueueTree.of(
        [
            make_queue("a").parent("b").obj(),
            make_queue("b").parent("a").obj(),
            make_queue("below").parent("a").obj(),
            make_queue("good").obj(),
        ]
    )
    assert _texts(tree).keys() == {"a", "b", "below"}
    assert tree.refusal("good") is None


def test_a_chain_without_end_is_cut_and_told() -> None:
    names = [f"q{number}" for number in range(MAX_DEPTH + 5)]
    queues = [make_queue(names[0]).obj()]
    queues += [make_queue(n).parent(p).obj() for p, n in pairwise(names)]
    tree = QueueTree.of(queues)
    assert "more than" in _texts(tree)[names[-1]]
    assert len(tree.nodes) == len(names) + 2


def test_contradictions_are_told_and_reckoned_with() -> None:
    queue = make_queue("q").capability(cpu="2").deserved(cpu="3").guarantee(cpu="4").obj()
    tree = QueueTree.of([queue])
    assert [problem.text for problem in tree.problems] == [
        "guarantee of cpu is above deserved",
        "guarantee of cpu is above capability",
        "deserved of cpu is above capability",
    ]
    assert tree.refusal("q") is None
    assert tree.nodes["q"].quota.real_capability["cpu"] == 2000


def test_work_goes_into_open_leaves_only() -> None:
    tree = QueueTree.of(
        [
            make_queue("inner").obj(),
            make_queue("leaf").parent("inner").obj(),
            make_queue("shut").state("Closed").obj(),
            make_queue("below").parent("shut").obj(),
            make_queue("closing").state("Closing").obj(),
        ]
    )
    refusals = {name: tree.refusal(name) for name in tree.nodes}
    assert {name: one.code for name, one in refusals.items() if one is not None} == {
        "root": WaitCode.NOT_A_LEAF,
        "inner": WaitCode.NOT_A_LEAF,
        "shut": WaitCode.NOT_A_LEAF,
        "below": WaitCode.CLOSED,
        "closing": WaitCode.CLOSED,
    }
    unknown = tree.refusal("nowhere")
    assert unknown is not None
    assert unknown.code is WaitCode.UNKNOWN_QUEUE
