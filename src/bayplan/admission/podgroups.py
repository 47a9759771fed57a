"""PodGroups at the door: counts that can be, amounts that can be read, and a queue that takes them.

A group in a queue that does not exist, is closed or has queues below it would only wait; who makes
it is told at once. What is changed later is judged by what has changed: a group may outlive its
queue's closing.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.admission.amounts import amount_faults, uncounted
from bayplan.admission.book import QueueBook
from bayplan.admission.review import Fault, Verdict
from bayplan.base.values import shorten
from bayplan.kube.queueing import DEFAULT_QUEUE, PodGroup

_MOST = 2**31 - 1


def judge_group(group: PodGroup, old: PodGroup | None, book: QueueBook) -> Verdict:
    """Whether a group may be made, or changed like that."""
    if old is not None and old.spec == group.spec:
        return Verdict()
    faults = list(_own_faults(group))
    if old is None or old.spec.queue != group.spec.queue:
        faults += _queue_faults(group.spec.queue or DEFAULT_QUEUE, book)
    return Verdict(tuple(faults), warnings=() if faults else tuple(_warnings(group)))


def _own_faults(group: PodGroup) -> Iterator[Fault]:
    spec = group.spec
    if not 0 <= spec.min_member <= _MOST:
        yield Fault("spec.minMember", f"{spec.min_member} is not from 0 to {_MOST}")
    for task, count in spec.min_task_member.items():
        if not 0 <= count <= _MOST:
            place = f"spec.minTaskMember[{shorten(task)}]"
            yield Fault(place, f"{count} is not from 0 to {_MOST}")
    yield from amount_faults("spec.minResources", spec.min_resources or {})


def _queue_faults(name: str, book: QueueBook) -> Iterator[Fault]:
    queue, place = book.get(name), "spec.queue"
    if queue is None:
        yield Fault(place, f"queue {shorten(name)} does not exist")
        return
    if below := book.below(name):
        example = min(child.name for child in below)
        text = f"queue {name} has queues below it, such as {example}, and only leaves take work"
        yield Fault(place, text)
    if (closed := book.closed_at(queue)) is not None:
        where = "" if closed is queue else f" below queue {closed.name}, which is"
        yield Fault(place, f"queue {name} is{where} {closed.status.state}, not Open")


def _warnings(group: PodGroup) -> Iterator[str]:
    spec = group.spec
    tasks = sum(spec.min_task_member.values())
    if tasks > spec.min_member:
        yield (
            f"spec.minTaskMember: {tasks} in all, more than minMember {spec.min_member}: the tasks'"
            " own minima do not count"
        )
    yield from uncounted("spec.minResources", spec.min_resources or {})
