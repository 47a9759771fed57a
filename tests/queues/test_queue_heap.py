"""Whose turn it is: the queue that comes first, whatever the tree and whoever had a turn before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.queues import Ledger, TaskStatus
from bayplan.queues.queue_heap import QueueHeap
from tests.builders import make_pod, make_pod_group, make_queue

PARENTS = {"x": "", "y": "", "x1": "x", "x2": "x", "y1": "y", "z": ""}
LEAVES = ["x1", "x2", "y1", "z"]
PODS = 3


def _ledger(deserved: dict[str, int], priorities: dict[str, int]) -> Ledger:
    ledger = Ledger()
    for day, (name, parent) in enumerate(PARENTS.items(), start=1):
        queue = make_queue(name).parent(parent).created(f"2026-01-0{day}T00:00:00Z")
        queue.priority(priorities.get(name, 0))
        ledger.put_queue((queue.deserved(cpu=deserved[name]) if deserved[name] else queue).obj())
    for leaf in LEAVES:
        group = make_pod_group(leaf).queue(leaf)
        ledger.put_group(group.obj())
        for number in range(PODS):
            ledger.put_pod(group.member(make_pod(f"{leaf}-{number}").cpu("1")).obj())
    return ledger


def _heap(ledger: Ledger) -> QueueHeap:
    heap = QueueHeap(ledger)
    for leaf in LEAVES:
        heap.add(leaf)
    return heap


@given(
    deserved=st.fixed_dictionaries({name: st.integers(0, 4) for name in PARENTS}),
    priorities=st.dictionaries(st.sampled_from(LEAVES), st.integers(0, 1)),
)
@settings(max_examples=60, deadline=None)
def test_the_lowest_share_of_the_highest_priority_is_next_at_each_level(
    deserved: dict[str, int], priorities: dict[str, int]
) -> None:
    ledger = _ledger(deserved, priorities)
    turns = _heap(ledger)
    left = dict.fromkeys(LEAVES, PODS)
    while (queue := turns.first()) is not None:
        waiting = [name for name, number in left.items() if number]
        highest = max(priorities.get(name, 0) for name in waiting)
        rivals = [name for name in waiting if priorities.get(name, 0) == highest]
        assert queue in rivals
        for name in ledger.tree.path(queue):
            parent = ledger.tree.path(name)[1:]
            siblings = {
                path[-len(parent) - 1]
                for path in map(ledger.tree.path, rivals)
                if parent and path[-len(parent) :] == parent
            }
            assert all(ledger.share(name) <= ledger.share(other) for other in siblings)
        left[queue] -= 1
        ledger.move(ledger.members[f"default/{queue}-{left[queue]}"], TaskStatus.BINDING)
        if not left[queue]:
            turns.discard(queue)
    assert not any(left.values())


def test_among_equals_the_older_queue_is_next() -> None:
    ledger = _ledger(dict.fromkeys(PARENTS, 0), {})
    turns = _heap(ledger)
    order = []
    while (queue := turns.first()) is not None:
        order.append(queue)
        turns.discard(queue)
    assert order == ["x1", "x2", "y1", "z"]
