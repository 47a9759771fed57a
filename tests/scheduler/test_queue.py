"""Who is next, who rests, who waits, and what wakes them."""

from __future__ import annotations

import pytest

from bayplan.kube.pods import Pod
from bayplan.scheduler.config import Backoff
from bayplan.scheduler.queue import QueuedPod, SchedulingQueue, SubQueue
from tests.builders import make_pod

FIT = frozenset({"NodeResourcesFit"})
PORTS = frozenset({"NodePorts"})


class NameHints:
    """An event is the name of the plugin that it helps; pods are alike by their first letter."""

    def __init__(self, *, known_refusals: bool = False, apart: bool = False) -> None:
        self.known_refusals, self.apart = known_refusals, apart
        self.apart_by_name: list[str] = []
        self.nonzero: list[str] = []

    def priority(self, pod: Pod) -> int:
        return pod.spec.priority or 0

    def signature(self, pod: Pod) -> str | None:
        return pod.name[0] if self.known_refusals else None

    def concerns(self, plugins: frozenset[str], event: str) -> bool:
        return event != "nobody's"

    def marks(self, pod: Pod) -> list[str]:
        return [pod.name]

    def sets_apart(self, plugins: frozenset[str], event: str) -> list[str] | None:
        return None if self.apart else self.apart_by_name

    def helps(self, pod: Pod, plugins: frozenset[str], event: str) -> bool:
        self.nonzero.append(pod.name)
        return event in plugins


def queue(judge: NameHints | None = None, **options: object) -> SchedulingQueue[str]:
    return SchedulingQueue(judge or NameHints(), **options)  # type: ignore[arg-type]


def pod(name: str, priority: int = 0) -> Pod:
    return make_pod(name).uid(name).priority(priority).obj()


def popped(q: SchedulingQueue[str], now: float) -> str | None:
    entry = q.pop(now)
    return None if entry is None else entry.pod.name


def take(q: SchedulingQueue[str], now: float) -> QueuedPod:
    entry = q.pop(now)
    assert entry is not None
    return entry


def test_the_most_important_goes_first_then_the_oldest() -> None:
    q = queue()
    q.put(pod("young"), 2.0)
    q.put(pod("old"), 1.0)
    q.put(pod("vip", 10), 3.0)
    assert [popped(q, 4.0) for _ in range(4)] == ["vip", "old", "young", None]


def test_pods_that_came_at_once_go_in_the_order_in_which_they_came() -> None:
    q = queue()
    for name in "cab":
        q.put(pod(name), 0.0)
    assert [popped(q, 0.0) for _ in range(3)] == ["c", "a", "b"]


def test_a_refused_pod_waits_for_an_event_that_may_help_it() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    q.refused(take(q, 0.0), FIT, 0.0)
    assert q.count(SubQueue.UNSCHEDULABLE) == 1
    assert q.wake("NodePorts", 5.0) == 0
    assert popped(q, 5.0) is None
    assert q.wake("NodeResourcesFit", 6.0) == 1
    assert popped(q, 6.0) == "p"


def test_a_pod_woken_early_rests_first_but_only_while_there_is_other_work() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    q.refused(take(q, 0.0), FIT, 0.0)
    q.wake("NodeResourcesFit", 0.1)
    assert q.count(SubQueue.BACKOFF) == 1
    q.put(pod("other", -1), 0.2)
    assert popped(q, 0.2) == "other"
    assert popped(q, 0.3) == "p"  # as kube-scheduler: the resting one, since nothing else is there


def test_a_pod_that_failed_by_an_error_rests_in_any_case() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    q.failed(take(q, 0.0), 0.0)
    assert popped(q, 0.9) is None
    assert q.next_due() == 1.0
    assert popped(q, 1.0) == "p"


def test_rests_double_from_one_second_to_ten() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    now, rests = 0.0, []
    for _ in range(6):
        q.failed(take(q, now), now)
        due = q.next_due()
        assert due is not None
        rests.append(due - now)
        now = due
    assert rests == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


def test_rests_can_be_set() -> None:
    q = queue(backoff=Backoff(3.0, 5.0))
    q.put(pod("p"), 0.0)
    q.failed(take(q, 0.0), 0.0)
    assert q.next_due() == 3.0
    q.failed(take(q, 3.0), 3.0)
    assert q.next_due() == 8.0


def test_an_error_starts_its_own_count_and_a_refusal_ends_it() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    for now in (0.0, 100.0, 200.0):
        q.refused(take(q, now), FIT, now)
        q.wake("NodeResourcesFit", now + 50)
    q.failed(take(q, 300.0), 300.0)
    assert q.next_due() == 301.0


def test_after_five_minutes_a_pod_is_tried_whatever_happens() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    q.refused(take(q, 10.0), FIT, 10.0)
    assert q.next_due() == 310.0
    assert popped(q, 309.9) is None
    assert popped(q, 310.0) == "p"


def test_a_tried_pod_goes_behind_its_equals() -> None:
    q = queue()
    q.put(pod("a"), 0.0)
    q.put(pod("b"), 1.0)
    q.refused(take(q, 2.0), FIT, 2.0)
    q.wake("NodeResourcesFit", 20.0)
    assert [popped(q, 20.0) for _ in range(2)] == ["b", "a"]


def test_gated_pods_are_held_until_their_gates_are_gone() -> None:
    q = queue()
    q.put(make_pod("p").uid("p").gate("example.com/wait").obj(), 0.0)
    assert q.count(SubQueue.GATED) == 1
    q.wake("anything", 1.0)
    assert popped(q, 1000.0) is None
    assert q.next_due() is None
    q.put(pod("p"), 1001.0)
    assert popped(q, 1001.0) == "p"


@pytest.mark.parametrize("helpful", [True, False])
def test_what_happens_while_a_pod_is_decided_is_not_lost_on_it(helpful: bool) -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    entry = take(q, 0.0)
    q.wake("NodeResourcesFit" if helpful else "NodePorts", 0.1)
    q.refused(entry, FIT, 0.2)
    assert entry.subqueue is (SubQueue.BACKOFF if helpful else SubQueue.UNSCHEDULABLE)


def test_what_happened_before_a_pod_was_looked_at_does_not_count() -> None:
    q = queue()
    for name in ("a", "b"):
        q.put(pod(name), 0.0)
    first = take(q, 0.0)
    q.wake("NodeResourcesFit", 0.1)
    second = take(q, 0.2)
    q.refused(second, FIT, 0.3)
    q.refused(first, FIT, 0.3)
    assert (first.subqueue, second.subqueue) == (SubQueue.BACKOFF, SubQueue.UNSCHEDULABLE)


def test_events_are_kept_only_for_those_who_may_ask() -> None:
    q = queue()
    for name in "abc":
        q.put(pod(name), 0.0)
    flying = [take(q, 0.0) for _ in range(3)]
    for _ in range(100):
        q.wake("NodePorts", 1.0)
    q.done(flying[1])
    assert q.events_kept == 100
    q.refused(flying[0], FIT, 1.0)
    q.wake("NodePorts", 2.0)
    q.remove("c")
    assert q.events_kept == 0
    q.wake("NodePorts", 3.0)
    assert q.events_kept == 0


def test_a_pod_that_is_gone_is_gone_wherever_it_was() -> None:
    q = queue()
    for name in "abcdef":
        q.put(pod(name), 0.0)
    refused, failed, flying = (take(q, 0.0) for _ in range(3))
    q.refused(refused, FIT, 0.0)
    q.failed(failed, 0.0)
    for name in "abcd":
        q.remove(name)
    q.refused(flying, FIT, 1.0)  # it came back too late
    assert [popped(q, 400.0) for _ in range(3)] == ["e", "f", None]
    assert len(q) == 2  # in flight
    assert q.count(SubQueue.IN_FLIGHT) == 2


def test_a_changed_pod_keeps_its_place_in_its_new_order() -> None:
    q = queue()
    q.put(pod("a"), 0.0)
    q.put(pod("b"), 1.0)
    q.put(pod("b", 5), 2.0)
    assert [popped(q, 3.0) for _ in range(2)] == ["b", "a"]
    for entry in list(q):
        q.refused(entry, FIT, 4.0)
    newer = pod("a")
    q.put(newer, 5.0)
    changed = q.get("a")
    assert changed is not None
    assert (changed.subqueue, changed.pod) == (SubQueue.UNSCHEDULABLE, newer)


def test_a_pod_that_changes_while_it_is_decided_comes_back_as_it_is_now() -> None:
    q = queue()
    q.put(pod("p"), 0.0)
    entry = take(q, 0.0)
    newer = pod("p", 3)
    q.put(newer, 0.5)
    q.failed(entry, 1.0)
    again = take(q, 2.0)
    assert again.pod is newer
    assert again.priority == 3


def test_activating_a_pod_ends_its_rest_and_its_wait() -> None:
    q = queue()
    for name in "ab":
        q.put(pod(name), 0.0)
    q.refused(take(q, 0.0), FIT, 0.0)
    q.failed(take(q, 0.0), 0.0)
    q.activate("a")
    q.activate("b")
    q.activate("nobody")
    assert [popped(q, 0.1) for _ in range(3)] == ["a", "b", None]


def test_pods_that_are_alike_are_asked_together() -> None:
    judge = NameHints(known_refusals=True)
    q = queue(judge)
    for name in ("a1", "a2", "a3", "b1"):
        q.put(pod(name), 0.0)
    for _ in range(4):
        q.refused(take(q, 0.0), FIT, 0.0)
    assert q.wake("nobody's", 1.0) == 0
    assert judge.nonzero == []
    assert q.wake("NodePorts", 1.0) == 0
    assert sorted(judge.nonzero) == ["a1", "b1"]
    judge.nonzero.clear()
    judge.apart_by_name = ["a2", "a3", "nobody"]
    assert q.wake("NodePorts", 1.0) == 0
    assert sorted(judge.nonzero) == ["a1", "a2", "a3", "b1"]
    judge.nonzero.clear()
    judge.apart_by_name = ["a1"]
    assert q.wake("NodePorts", 1.0) == 0
    assert sorted(judge.nonzero) == ["a1", "a2", "b1"]
    judge.nonzero.clear()
    judge.apart = True
    assert q.wake("NodePorts", 1.0) == 0
    assert sorted(judge.nonzero) == ["a1", "a2", "a3", "b1"]
    assert q.wake("NodeResourcesFit", 2.0) == 4


def test_what_matters_to_one_pod_wakes_that_pod_alone() -> None:
    q = queue()
    for name in "abc":
        q.put(pod(name), 0.0)
    q.refused(take(q, 0.0), FIT, 0.0)
    q.refused(take(q, 0.0), FIT, 0.0)
    flying = take(q, 0.0)
    assert not q.wake_one("a", "NodePorts", 5.0)
    assert q.wake_one("a", "NodeResourcesFit", 5.0)
    assert not q.wake_one("c", "NodeResourcesFit", 5.0)
    assert not q.wake_one("nobody", "NodeResourcesFit", 5.0)
    q.refused(flying, FIT, 6.0)
    assert (q.count(SubQueue.ACTIVE), q.count(SubQueue.UNSCHEDULABLE)) == (1, 1)
    assert flying.subqueue is SubQueue.BACKOFF


def test_hopeless_pods_of_high_priority_do_not_starve_the_others() -> None:
    q = queue()
    for number in range(50):
        q.put(pod(f"hopeless-{number}", 1000), 0.0)
    q.put(pod("modest"), 0.0)
    tries = 0
    while (entry := take(q, 0.0)).pod.name != "modest":
        q.refused(entry, FIT, 0.0)
        q.wake("NodeResourcesFit", 0.0)  # and everything that happens seems to help them
        tries += 1
    assert tries == 50


def test_moves_are_told() -> None:
    told: list[tuple[str, str]] = []
    q = queue(on_move=lambda place, why: told.append((place.value, why)))
    q.put(pod("p"), 0.0)
    q.refused(take(q, 0.0), FIT, 0.0)
    q.wake("NodeResourcesFit", 5.0, why="NodeAdd")
    assert told == [
        ("active", "PodAdd"),
        ("in-flight", "Pop"),
        ("unschedulable", "ScheduleAttemptFailure"),
        ("active", "NodeAdd"),
    ]


def held_by_letter(letter: str) -> SchedulingQueue[str]:
    return queue(is_held=lambda entry: entry.pod.name.startswith(letter))


def test_a_held_pod_is_not_popped_and_is_decided_by_whoever_takes_it() -> None:
    q = held_by_letter("h")
    q.put(pod("held", 10), 0.0)
    q.put(pod("plain"), 0.0)
    assert [entry.pod.name for entry in q.newly_held()] == ["held"]
    assert q.newly_held() == []
    assert [popped(q, 1.0) for _ in range(2)] == ["plain", None]
    entry = q.get("held")
    assert entry is not None
    assert q.take(entry, 2.0).subqueue is SubQueue.IN_FLIGHT
    assert (entry.attempts, entry.first_try) == (1, 2.0)


def test_a_held_pod_that_was_refused_is_held_again_when_something_may_help_it() -> None:
    q = held_by_letter("h")
    q.put(pod("held"), 0.0)
    (entry,) = q.newly_held()
    q.refused(q.take(entry, 0.0), FIT, 0.0)
    assert (entry.subqueue, q.newly_held()) == (SubQueue.UNSCHEDULABLE, [])
    q.wake("NodeResourcesFit", 0.5)
    assert entry.subqueue is SubQueue.BACKOFF
    # Nothing else is active, so it need not rest: it is held again, not popped.
    assert popped(q, 0.6) is None
    assert q.newly_held() == [entry]


def test_a_held_pod_that_failed_is_held_again_after_its_rest() -> None:
    q = held_by_letter("h")
    q.put(pod("held"), 0.0)
    (entry,) = q.newly_held()
    q.failed(q.take(entry, 0.0), 0.0)
    assert (popped(q, 0.5), q.newly_held()) == (None, [])
    assert (popped(q, 1.0), q.newly_held()) == (None, [entry])


def test_a_held_pod_that_is_gone_is_not_told_of() -> None:
    q = held_by_letter("h")
    q.put(pod("held"), 0.0)
    q.remove("held")
    assert q.newly_held() == []
    assert q.count(SubQueue.HELD) == 0


def test_a_pod_is_held_only_when_its_gates_are_gone() -> None:
    q = held_by_letter("h")
    q.put(make_pod("held").uid("held").gate("g").obj(), 0.0)
    assert (q.count(SubQueue.GATED), q.newly_held()) == (1, [])
    q.put(pod("held"), 1.0)
    assert [entry.pod.name for entry in q.newly_held()] == ["held"]
