"""Queues at the door: their amounts, their place in the tree, their state, and their end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.admission.queue_index import QueueIndex
from bayplan.admission.queues import review_deletion, review_queue, review_state
from bayplan.admission.review import ReviewResponse
from bayplan.client import Change
from bayplan.kube.volcano import Queue
from bayplan.queues.tree import MAX_DEPTH, QueueTree
from tests.admission.reviews import ask, make_app, review
from tests.builders.queues import QueueBuilder


def make(name: str = "q") -> QueueBuilder:
    return QueueBuilder(name)


def index(*queues: QueueBuilder) -> QueueIndex:
    return QueueIndex(one.obj() for one in queues)


def denial(response: ReviewResponse) -> str:
    return "; ".join(map(str, response.faults))


def created(queue: QueueBuilder, *others: QueueBuilder) -> str:
    return denial(review_queue(queue.obj(), None, index(*others)))


def changed(old: QueueBuilder, new: QueueBuilder, *others: QueueBuilder) -> str:
    return denial(review_queue(new.obj(), old.obj(), index(old, *others)))


def test_amounts_that_agree_are_let_in() -> None:
    queue = make().guarantee(cpu="1").deserved(cpu="2", memory="1Gi").capability(cpu="2000m")
    assert not created(queue)


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        (make().guarantee(cpu="3").deserved(cpu="2"), "cpu: 3 is more than the 2 of spec.deserved"),
        (make().deserved(cpu="3").capability(cpu="2"), "than the 2 of spec.capability"),
        (make().guarantee(cpu="3").capability(cpu="2"), "spec.guarantee.resource: cpu: 3 is more"),
        (make().deserved(memory="1025Mi").capability(memory="1Gi"), "1025Mi is more than the 1Gi"),
        (make().capability(cpu="-1"), "spec.capability: cpu: '-1' is negative"),
        (make().capability(cpu="lots"), "not a number with an optional suffix"),
        (make().capability(cpu="1e40"), "is beyond 64 bits"),
        (make().capability(cpu="9" * 300), "longer than 256 characters"),
        (make().capability(**{"nvidia.com/gpu": "1500m"}), "is not a whole number"),
        (make().deserved(pods="0.5"), "is not a whole number"),
        (make().weight(0), "spec.weight: 0 is not from 1 to 65535"),
        (make().weight(65536), "spec.weight"),
        (make().priority(-1), "spec.priority: -1 is negative"),
    ],
)
def test_amounts_that_cannot_be_are_refused(queue: QueueBuilder, text: str) -> None:
    assert text in created(queue)


def test_all_amounts_that_are_wrong_are_named() -> None:
    faults = review_queue(make().capability(cpu="-1", memory="x").obj(), None, index()).faults
    assert len(faults) == 2


def test_a_guarantee_needs_no_deserved() -> None:
    assert not created(make().guarantee(cpu="1"))


def test_a_name_that_no_node_has_is_warned_of() -> None:
    (warning,) = review_queue(make().capability(cpus="1").obj(), None, index()).warnings
    assert "cpus is no resource that a node can have" in warning


# -- where it stands ------------------------------------------------------------------------------


@pytest.mark.parametrize("parent", ["", "root", "default"])
def test_a_queue_may_stand_below_what_is_always_there(parent: str) -> None:
    assert not created(make().parent(parent))


def test_a_parent_must_be_there() -> None:
    assert "names 'nobody', which does not exist" in created(make().parent("nobody"))
    above = make("a").parent("nobody")
    assert "a queue above it names 'nobody'" in created(make().parent("a"), above)


def test_a_queue_is_not_its_own_parent() -> None:
    assert "its own parent" in created(make().parent("q"))


def test_a_cycle_is_refused() -> None:
    b, c = make("b").parent("a"), make("c").parent("b")
    assert "c is below a: that would be a cycle" in changed(make("a"), make("a").parent("c"), b, c)


def test_a_cycle_of_others_does_not_hang() -> None:
    assert created(make().parent("a"), make("a").parent("b"), make("b").parent("a"))


def test_the_root_has_no_parent() -> None:
    assert "the root queue has no parent" in created(make("root").parent("a"), make("a"))


def test_a_tree_has_a_greatest_depth() -> None:
    chain = [make("q0")] + [make(f"q{n}").parent(f"q{n - 1}") for n in range(1, MAX_DEPTH)]
    assert not created(chain[-2], *chain[:-2])
    assert f"more than {MAX_DEPTH} queues would stand" in created(chain[-1], *chain[:-1])
    moved = changed(make("q0"), make("q0").parent("top"), make("top"), *chain[1:-1])
    assert f"more than {MAX_DEPTH} queues would stand" in moved


def test_a_queue_with_pods_takes_no_queues_below_it() -> None:
    busy = make("busy")
    busy.obj().status.allocated = {"cpu": "3", "pods": "3"}
    assert "queue busy has 3 pods, and only leaves take work" in created(
        make().parent("busy"), busy
    )
    assert not created(make().parent("busy"), busy, make("other").parent("busy"))


# -- what those above and below it say ------------------------------------------------------------


def test_a_limit_is_within_the_nearest_above_it() -> None:
    top, mid = make("top").capability(cpu="8"), make("mid").parent("top").capability(memory="1Gi")
    assert not created(make().parent("mid").capability(cpu="8"), top, mid)
    text = created(make().parent("mid").capability(cpu="9"), top, mid)
    assert "cpu: 9 is more than the 8 of queue top above it" in text


def test_a_limit_covers_those_below_it() -> None:
    old, new = make().capability(cpu="8"), make().capability(cpu="2")
    child = make("child").parent("q").capability(cpu="4")
    assert "cpu: 2 is less than the 4 of queue child below it" in changed(old, new, child)


def test_children_are_promised_no_more_than_their_parent() -> None:
    top = make("top").deserved(cpu="4").guarantee(cpu="2")
    sibling = make("s").parent("top").deserved(cpu="3").guarantee(cpu="1")
    assert not created(make().parent("top").deserved(cpu="1").guarantee(cpu="1"), top, sibling)
    text = created(make().parent("top").deserved(cpu="1500m"), top, sibling)
    assert "spec.deserved: cpu: with q, queues below top have 4500m, and it has 4" in text
    text = changed(top, make("top").deserved(cpu="4").guarantee(cpu="500m"), sibling)
    assert "queues below top have 1, and it has 500m" in text


def test_below_the_root_nobody_adds_up() -> None:
    root = make("root").deserved(cpu="1")
    assert not created(make().deserved(cpu="2"), root, make("s").deserved(cpu="2"))


def test_a_guarantee_that_the_parent_does_not_have_is_warned_of() -> None:
    queue = make().parent("top").guarantee(cpu="1").obj()
    (warning,) = review_queue(queue, None, index(make("top"))).warnings
    assert "queue top above it has no such guarantee" in warning


def test_queues_that_are_wrong_already_do_not_fail_others() -> None:
    odd = make("top").deserved(cpu="x").capability(cpu="-").guarantee(cpu="y")
    odd.obj().status.allocated = {"pods": "z"}
    wrong = make("s").parent("top").deserved(cpu="?")
    queue = make().parent("top").deserved(cpu="1").capability(cpu="1").guarantee(cpu="1")
    assert not created(queue, odd, wrong)


def test_a_change_of_other_things_is_let_in() -> None:
    alone = make().parent("nobody").capability(cpu="-1")
    labelled = make().parent("nobody").capability(cpu="-1").labels(a="b")
    assert not changed(alone, labelled)


# -- deletion and state ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["root", "default"])
def test_what_is_always_there_is_not_deleted(name: str) -> None:
    assert denial(review_deletion(name, index(make(name)))) == f"queue {name} cannot be deleted"


def test_a_queue_with_queues_below_it_is_not_deleted() -> None:
    children = [make(f"c{n}").parent("q") for n in range(5)]
    text = denial(review_deletion("q", index(make(), *children)))
    assert text == "queue q has queues below it: c0, c1, c2 and 2 more"
    assert not denial(review_deletion("c0", index(make(), *children)))
    assert not denial(review_deletion("unknown", index()))


async def test_a_queue_that_is_deleted_with_all_others_is_known_by_its_object() -> None:
    old = {"metadata": {"name": "default"}, "spec": {}}
    answer = await ask(make_app(), "/queues/validate", review("queues", "DELETE", None, old))
    assert answer.response["status"]["code"] == 403


@pytest.mark.parametrize(
    ("was", "state", "ok"),
    [
        ("Open", "Closing", True),
        ("Open", "Closed", True),
        ("Closing", "Closed", True),
        ("Closing", "Open", True),
        ("Closed", "Open", True),
        ("Unknown", "Open", True),
        ("Closed", "Closing", False),
    ],
)
def test_states_follow_each_other(was: str, state: str, ok: bool) -> None:
    old, new = make().obj(), make().obj()
    old.status.state, new.status.state = was, state
    assert bool(denial(review_state(new, old, index()))) is not ok


def test_the_root_is_not_closed() -> None:
    root = make("root").state("Closed").obj()
    assert "cannot be closed" in denial(review_state(root, make("root").obj(), index()))


def test_a_queue_opens_after_those_above_it() -> None:
    old, new = make().parent("top").state("Closed").obj(), make().parent("top").obj()
    text = denial(review_state(new, old, index(make("top").state("Closing"))))
    assert "queue top above it is Closing; open that first" in text
    assert not denial(review_state(new, old, index(make("top"))))


# -- the book -------------------------------------------------------------------------------------

NAMES = ("a", "bb", "ccc", "dddd")
STEPS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(("", "root", *NAMES)), st.booleans()),
    max_size=20,
)


@given(STEPS)
def test_the_book_knows_who_is_below_whom(steps: list[tuple[str, str, bool]]) -> None:
    held: dict[str, Queue] = {}
    kept = QueueIndex()
    for name, parent, stays in steps:
        queue = make(name).parent(parent).deserved(cpu=len(name)).obj()
        was = held.pop(name, None)
        if stays:
            held[name] = queue
            kept.take(Change("updated" if was else "added", was, queue))
        else:
            kept.take(Change("deleted", was, queue))
        for one in (*NAMES, "root"):
            below = {n for n, q in held.items() if (q.spec.parent or "root") == one}
            assert {q.name for q in kept.below(one)} == below
            assert kept.has_below(one) is bool(below)
            promised = kept.promised_below(one, without="a")["spec.deserved"]["cpu"]
            assert promised == 1000 * sum(len(n) for n in below - {"a"})


AMOUNT = st.none() | st.integers(0, 6)


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(st.sampled_from(NAMES), st.sampled_from(("", *NAMES)), AMOUNT, AMOUNT, AMOUNT),
        max_size=12,
    )
)
def test_what_is_let_in_one_after_another_is_a_sound_tree(
    steps: list[tuple[str, str, int | None, int | None, int | None]],
) -> None:
    """The scheduler's own reading of the tree finds nothing to complain of."""
    kept = QueueIndex()
    held: dict[str, Queue] = {}
    for name, parent, guarantee, deserved, capability in steps:
        queue = make(name).parent(parent).obj()
        for amount, where in (
            (guarantee, queue.spec.guarantee.resource),
            (deserved, queue.spec.deserved),
            (capability, queue.spec.capability),
        ):
            if amount is not None:
                where["cpu"] = amount
        if review_queue(queue, held.get(name), kept).allowed:
            held[name] = queue
            kept.put(queue)
        assert not QueueTree.of(held.values()).problems
