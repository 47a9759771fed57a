"""No group with quota is forgotten in the order of queues, whatever comes, goes, and is refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bayplan.kube.meta import ObjectMeta
from bayplan.kube.volcano import PodGroup, PodGroupSpec, Queue, QueueSpec
from bayplan.queues import Ledger
from bayplan.queues.orders import group_order
from bayplan.queues.queue_order import QueueOrder
from bayplan.queues.requests import QuotaRequest
from bayplan.queues.starvation import HOLD_UP, PATIENCE
from tests.builders import make_pod

PARENTS = {"a": "upper", "b": "upper", "c": "", "upper": ""}
LEAVES = ("a", "b", "c")
Act = tuple[str, str, int]
acts = st.lists(
    st.tuples(
        st.sampled_from(("come", "come", "rush", "go", "limit")),
        st.sampled_from(LEAVES),
        st.integers(1, 5),
    ),
    max_size=40,
)


class QueueOrderFixture:
    """A ledger, the order of its queues, and serving the next one."""

    def __init__(self, strict: str) -> None:
        self.ledger = Ledger(priority_of=lambda name: 10 if name == "high" else 0)
        self.order = QueueOrder(self.ledger)
        self.strict = strict
        self.number = 0
        for name in PARENTS:
            self.limit(name, 6 if name == "upper" else 4)

    def limit(self, name: str, cpu: int) -> None:
        strategy = "fifo" if name == self.strict else "traverse"
        limit = QueueSpec(parent=PARENTS[name], capability={"cpu": cpu}, dequeue_strategy=strategy)
        self.ledger.put_queue(Queue(metadata=ObjectMeta(name=name), spec=limit))

    def come(self, queue: str, cpu: int, now: float, priority: str = "") -> None:
        self.number += 1
        name = f"g{self.number:03}"
        meta = ObjectMeta(namespace="default", name=name)
        spec = PodGroupSpec(queue=queue, priority_class_name=priority)
        group = self.ledger.put_group(PodGroup(metadata=meta, spec=spec))
        pod = make_pod(name).uid(name).cpu(str(cpu)).obj()
        pod.metadata.annotations["scheduling.k8s.io/group-name"] = name
        member = self.ledger.put_pod(pod)
        self.order.put(group, [QuotaRequest(member.request)], now)

    def go(self, which: int) -> None:
        """One that was let in, or waits, is gone."""
        keys = list(self.ledger.members)
        if keys:
            key = keys[which % len(keys)]
            group = self.ledger.members[key].group
            self.ledger.delete_pod(key)
            self.ledger.delete_group(group)
            self.order.remove(group)

    def look(self, now: float) -> None:
        """Let in whoever can be, at some later moment."""
        if self.order.starvation.expire(now):
            self.order.reconsider_all()
        self._serve(now)

    def _serve(self, now: float) -> None:
        """Let in whoever can be, until nobody is next."""
        for _ in range(1000):
            turn = self.order.next(now)
            if turn is None:
                return
            key, _ = turn
            (member,) = self.ledger.groups[key].members.values()
            reason = self.ledger.may_allocate(member)
            if reason is None:
                self.order.remove(key)
                self.ledger.reserve(member)
            else:
                self.order.refuse(turn, reason, now)
        raise AssertionError("there is no end to it")

    def forgotten(self) -> list[str]:
        """Those that wait though there is quota, and not behind another of a strict queue."""
        waiting = [self.ledger.groups[key] for key in self.order]
        return [
            group.key
            for group in waiting
            if self.ledger.may_allocate(next(iter(group.members.values()))) is None
            and not any(one.queue == group.queue == self.strict and one is not group
                        and group_order(one) < group_order(group) for one in waiting)
        ]  # fmt: skip


def play(bench: QueueOrderFixture, what: list[Act], pace: float) -> float:
    now = 0.0
    for act, queue, number in what:
        now += pace
        match act:
            case "come":
                bench.come(queue, number, now)
            case "rush":
                bench.come(queue, number, now, "high")
            case "go":
                bench.go(number)
            case _:
                bench.limit(queue, number)
        bench.look(now)
    return now


@given(acts, st.sampled_from(("", "a", "c")))
def test_whoever_has_quota_is_let_in(what: list[Act], strict: str) -> None:
    bench = QueueOrderFixture(strict)
    play(bench, what, pace=1.0)
    assert bench.forgotten() == []


@given(acts)
def test_who_was_held_up_goes_on_when_that_is_over(what: list[Act]) -> None:
    bench = QueueOrderFixture("")
    now = play(bench, what, pace=PATIENCE / 4)
    rounds = len(bench.order) + 1  # each may hold the others up once
    while bench.forgotten() and rounds:
        now, rounds = now + HOLD_UP, rounds - 1
        bench.look(now)
    assert bench.forgotten() == []


def test_who_comes_before_the_one_that_stops_a_strict_queue_does_not_wait_for_it() -> None:
    bench = QueueOrderFixture("c")
    bench.come("c", 5, now=1.0)
    bench.look(1.0)
    bench.come("c", 2, now=2.0, priority="high")
    bench.come("c", 2, now=3.0)
    bench.look(3.0)
    assert sorted(bench.order) == ["default/g001", "default/g003"]
