"""Queues and PodGroups at admission: their amounts, their place in the tree, their deletion.

A group in a queue that does not exist, is closed or has queues below it would only wait; it is
refused. An update is reviewed by what has changed: a group may outlive its queue's closing.

A queue's own amounts must agree (guarantee ≤ deserved ≤ capability), its parent must exist and not
be below it, and its amounts must agree with those of the queues above and below it. Missing amounts
do not contradict; where that may mislead, there is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator

from bayplan.admission.queue_index import (
    BUILT_IN,
    CAPABILITY,
    DESERVED,
    GUARANTEE,
    Promises,
    QueueIndex,
    amounts_of,
    is_open,
    parent_of,
    promises_of,
)
from bayplan.admission.review import (
    FieldFault,
    ReviewResponse,
    above,
    amount_faults,
    readable,
    uncounted,
)
from bayplan.base.values import shorten
from bayplan.kube.resources import PODS
from bayplan.kube.volcano import DEFAULT_QUEUE, ROOT_QUEUE, PodGroup, Queue
from bayplan.queues.resources import write_amounts
from bayplan.queues.tree import MAX_DEPTH

_MOST = 2**31 - 1


def review_group(group: PodGroup, old: PodGroup | None, index: QueueIndex) -> ReviewResponse:
    """Review the creation or update of a group."""
    if old is not None and old.spec == group.spec:
        return ReviewResponse()
    faults = list(_group_faults(group))
    if old is None or old.spec.queue != group.spec.queue:
        faults += _queue_faults(group.spec.queue or DEFAULT_QUEUE, index)
    return ReviewResponse(tuple(faults), warnings=() if faults else tuple(_group_warnings(group)))


def _group_faults(group: PodGroup) -> Iterator[FieldFault]:
    spec = group.spec
    if not 0 <= spec.min_member <= _MOST:
        yield FieldFault("spec.minMember", f"{spec.min_member} is not from 0 to {_MOST}")
    for task, count in spec.min_task_member.items():
        if not 0 <= count <= _MOST:
            place = f"spec.minTaskMember[{shorten(task)}]"
            yield FieldFault(place, f"{count} is not from 0 to {_MOST}")
    yield from amount_faults("spec.minResources", spec.min_resources or {})


def _queue_faults(name: str, index: QueueIndex) -> Iterator[FieldFault]:
    queue, place = index.get(name), "spec.queue"
    if queue is None:
        yield FieldFault(place, f"queue {shorten(name)} does not exist")
        return
    if below := index.below(name):
        example = min(child.name for child in below)
        text = f"queue {name} has queues below it, such as {example}, and only leaves take work"
        yield FieldFault(place, text)
    if (closed := index.closed_at(queue)) is not None:
        where = "" if closed is queue else f" below queue {closed.name}, which is"
        yield FieldFault(place, f"queue {name} is{where} {closed.status.state}, not Open")


def _group_warnings(group: PodGroup) -> Iterator[str]:
    spec = group.spec
    tasks = sum(spec.min_task_member.values())
    if tasks > spec.min_member:
        yield (
            f"spec.minTaskMember: {tasks} in all, more than minMember {spec.min_member}: the tasks'"
            " own minima do not count"
        )
    yield from uncounted("spec.minResources", spec.min_resources or {})


_MOST_NAMED = 3
_MOST_WEIGHT = 65535


def review_queue(queue: Queue, old: Queue | None, index: QueueIndex) -> ReviewResponse:
    """Review the creation or update of a queue."""
    if old is not None and old.spec == queue.spec:
        return ReviewResponse()
    faults = tuple(_own_faults(queue))
    if faults:
        return ReviewResponse(faults)
    moved = old is None or parent_of(old) != parent_of(queue)
    placed = tuple(_place_faults(queue, index)) if moved else ()
    faults = placed or (*_faults_above(queue, index), *_faults_below(queue, index))
    return ReviewResponse(faults, warnings=tuple(_warnings(queue, index)))


def review_deletion(name: str, index: QueueIndex) -> ReviewResponse:
    """Review the deletion of a queue."""
    if name in BUILT_IN:
        return ReviewResponse((FieldFault("", f"queue {name} cannot be deleted"),))
    below = [child.name for child in index.below(name)]
    if below:
        return ReviewResponse(
            (FieldFault("", f"queue {name} has queues below it: {_several(below)}"),)
        )
    return ReviewResponse()


def review_state(queue: Queue, old: Queue, index: QueueIndex) -> ReviewResponse:
    """Review the change of a queue's state."""
    was, state = old.status.state, queue.status.state
    if was == state:
        return ReviewResponse()
    problem = ""
    if queue.name == ROOT_QUEUE and not is_open(queue):
        problem = "the root queue cannot be closed"
    elif was == "Closed" and state == "Closing":
        problem = "is closed already"
    elif is_open(queue) and (closed := index.closed_at(_parent(queue, index))) is not None:
        problem = f"queue {closed.name} above it is {closed.status.state}; open that first"
    return ReviewResponse((FieldFault("status.state", problem),) if problem else ())


def _parent(queue: Queue, index: QueueIndex) -> Queue:
    return index.get(parent_of(queue)) or Queue()


def _own_faults(queue: Queue) -> Iterator[FieldFault]:
    spec = queue.spec
    wrong = [fault for place, written in amounts_of(queue).items()
             for fault in amount_faults(place, written)]  # fmt: skip
    yield from wrong
    if not 1 <= spec.weight <= _MOST_WEIGHT:
        yield FieldFault("spec.weight", f"{spec.weight} is not from 1 to {_MOST_WEIGHT}")
    if spec.priority < 0:
        yield FieldFault("spec.priority", f"{spec.priority} is negative")
    if not wrong:
        yield from _disagreements(queue)


def _disagreements(queue: Queue) -> Iterator[FieldFault]:
    """Yield where guarantee ≤ deserved ≤ capability does not hold."""
    said = amounts_of(queue)
    for less, more in (
        (GUARANTEE, DESERVED),
        (DESERVED, CAPABILITY),
        (GUARANTEE, CAPABILITY),
    ):
        for name, high, low in above(said[less], said[more]):
            yield FieldFault(less, f"{name}: {high} is more than the {low} of {more}")


def _place_faults(queue: Queue, index: QueueIndex) -> Iterator[FieldFault]:
    """Yield faults of a queue's parent: missing, a cycle, too deep, or not allowed."""
    place, parent = "spec.parent", queue.spec.parent
    if queue.name == ROOT_QUEUE:
        if parent:
            yield FieldFault(place, "the root queue has no parent")
        return
    if parent == queue.name:
        yield FieldFault(place, "a queue cannot be its own parent")
        return
    depth = 0
    for depth, one in enumerate(index.above(queue), 1):
        if isinstance(one, str):
            whose = "it" if depth == 1 else "a queue above it"
            yield FieldFault(place, f"{whose} names {shorten(one)}, which does not exist")
            return
        if one.name == queue.name:
            yield FieldFault(place, f"{parent} is below {queue.name}: that would be a cycle")
            return
    if depth + _height(queue, index) > MAX_DEPTH - 2:  # it and the root stand there too
        yield FieldFault(place, f"more than {MAX_DEPTH} queues would stand below one another")
    elif parent:
        yield from _work_in(parent, index)


def _height(queue: Queue, index: QueueIndex) -> int:
    """Return the number of levels below a queue."""
    height, level = 0, index.below(queue.name)
    while level and height < MAX_DEPTH:
        height += 1
        level = [child for one in level for child in index.below(one.name)]
    return height


def _work_in(parent: str, index: QueueIndex) -> Iterator[FieldFault]:
    """Yield a fault if the parent has pods: only leaf queues can have them."""
    found = index.get(parent)
    if found is None or parent == ROOT_QUEUE or index.has_below(parent):
        return
    pods = readable(found.status.allocated)[PODS]
    if pods:
        yield FieldFault(
            "spec.parent", f"queue {parent} has {pods:.0f} pods, and only leaves take work"
        )


def _faults_above(queue: Queue, index: QueueIndex) -> Iterator[FieldFault]:
    """Yield where a queue has more than its ancestors allow."""
    parent = index.get(parent_of(queue))
    if parent is None or parent.name == ROOT_QUEUE:
        return
    yield from _limits(queue, index)
    others, own = index.promised_below(parent.name, without=queue.name), promises_of(queue)
    asked = {place: others[place] + own[place] for place in own}
    yield from _sums(parent, asked, f"with {queue.name}, queues below {parent.name}")


def _limits(queue: Queue, index: QueueIndex) -> Iterator[FieldFault]:
    """Yield where the capability is above that of the nearest ancestor which has one."""
    rest = dict(queue.spec.capability)
    for one in index.above(queue):
        if not isinstance(one, Queue):
            return
        for name, high, low in above(rest, one.spec.capability):
            text = f"{name}: {high} is more than the {low} of queue {one.name} above it"
            yield FieldFault(CAPABILITY, text)
        rest = {name: value for name, value in rest.items() if name not in one.spec.capability}


def _faults_below(queue: Queue, index: QueueIndex) -> Iterator[FieldFault]:
    """Yield where a queue has less than its children."""
    children = index.below(queue.name)
    if not children or queue.name == ROOT_QUEUE:
        return
    for child in children:
        for name, high, low in above(child.spec.capability, queue.spec.capability):
            yield FieldFault(
                CAPABILITY, f"{name}: {low} is less than the {high} of queue {child.name} below it"
            )
    yield from _sums(queue, index.promised_below(queue.name), f"queues below {queue.name}")


def _sums(parent: Queue, asked: Promises, whose: str) -> Iterator[FieldFault]:
    """Yield where the sum over the children exceeds the amount of the parent."""
    written = amounts_of(parent)
    for place, total in asked.items():
        limit = readable(written[place])
        for name in total.over(limit, [one for one in total if one in limit.amounts]):
            have = write_amounts(total)[name]
            yield FieldFault(
                place, f"{name}: {whose} have {have}, and it has {written[place][name]}"
            )


def _warnings(queue: Queue, index: QueueIndex) -> Iterator[str]:
    said = amounts_of(queue)
    for place, written in said.items():
        yield from uncounted(place, written)
    parent = index.get(parent_of(queue))
    if parent is None or parent.name == ROOT_QUEUE:
        return
    kept = parent.spec.guarantee.resource
    missing = [name for name in said[GUARANTEE] if name not in kept]
    if missing:
        yield (
            f"{GUARANTEE}: {_several(missing)}: queue {parent.name} above it has no such"
            " guarantee, so that only its siblings keep to it"
        )


def _several(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown
