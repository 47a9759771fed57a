"""The index of queues: by name and by parent, with sums over the children of each queue.

`root` and `default` are in it whether or not they were made. It follows the cluster, so it may be a
moment behind; the scheduler reports what was admitted meanwhile. Sums are kept up as queues come
and go, so that the five thousandth child of a queue costs no more than the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bayplan.admission.review import readable
from bayplan.client import Change
from bayplan.kube.meta import ObjectMeta, Quantity
from bayplan.kube.volcano import DEFAULT_QUEUE, ROOT_QUEUE, Queue
from bayplan.queues.resources import NOTHING, Resources
from bayplan.queues.tree import MAX_DEPTH

Promises = Mapping[str, Resources]
"""The amounts of `deserved` and `guarantee`, by field."""
CAPABILITY, DESERVED, GUARANTEE = "spec.capability", "spec.deserved", "spec.guarantee.resource"
NO_PROMISES: Promises = {DESERVED: NOTHING, GUARANTEE: NOTHING}
BUILT_IN = (ROOT_QUEUE, DEFAULT_QUEUE)
_ALWAYS = {name: Queue(metadata=ObjectMeta(name=name)) for name in BUILT_IN}
_OPEN = ("Open", "")


class QueueIndex:
    """The existing queues."""

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self._queues: dict[str, Queue] = {}
        self._below: dict[str, dict[str, None]] = {}
        self._promised: dict[str, Promises] = {}
        """By queue, the sums over its children."""
        for queue in queues:
            self.put(queue)

    def get(self, name: str) -> Queue | None:
        """Return a queue by name; `root` and `default` always exist."""
        return self._queues.get(name) or _ALWAYS.get(name)

    def below(self, name: str) -> list[Queue]:
        """Return the children of a queue."""
        return [self._queues[child] for child in self._below.get(name, ())]

    def has_below(self, name: str) -> bool:
        """Whether a queue has children."""
        return bool(self._below.get(name))

    def promised_below(self, name: str, *, without: str = "") -> Promises:
        """Return the sums over the children of a queue, without one of them."""
        total, left_out = self._promised.get(name, NO_PROMISES), self._queues.get(without)
        if left_out is None or parent_of(left_out) != name:
            return total
        return _changed(total, promises_of(left_out), -1)

    def above(self, queue: Queue) -> Iterator[Queue | str]:
        """Yield the ancestors of a queue, nearest first, without the root.

        A missing ancestor is yielded as its name, and ends the iteration; so does a cycle.
        """
        for _ in range(MAX_DEPTH):
            parent = parent_of(queue)
            if parent == ROOT_QUEUE:
                return
            found = self.get(parent)
            if found is None:
                yield parent
                return
            yield found
            queue = found

    def closed_at(self, queue: Queue) -> Queue | None:
        """Return the queue or its nearest ancestor that is not open; None if all are open."""
        lineage = (queue, *(one for one in self.above(queue) if isinstance(one, Queue)))
        return next((one for one in lineage if not is_open(one)), None)

    def put(self, queue: Queue) -> None:
        """Add a queue, or replace it."""
        self.drop(queue.name)
        self._queues[queue.name] = queue
        self._below.setdefault(parent_of(queue), {})[queue.name] = None
        self._promise(queue, 1)

    def drop(self, name: str) -> None:
        """Remove a queue."""
        queue = self._queues.pop(name, None)
        if queue is not None:
            self._below[parent_of(queue)].pop(name)
            self._promise(queue, -1)

    def _promise(self, queue: Queue, sign: int) -> None:
        parent, own = parent_of(queue), promises_of(queue)
        if any(amounts.amounts for amounts in own.values()):
            total = self._promised.get(parent, NO_PROMISES)
            self._promised[parent] = _changed(total, own, sign)

    def take(self, change: Change[Queue]) -> None:
        """Apply a change of an informer."""
        if change.type == "deleted":
            self.drop(change.object.name)
        else:
            self.put(change.object)

    def __len__(self) -> int:
        return len(self._queues)


def parent_of(queue: Queue) -> str:
    """Return the name of a queue's parent; for the root, which has none, its own."""
    return ROOT_QUEUE if queue.name == ROOT_QUEUE else queue.spec.parent or ROOT_QUEUE


def is_open(queue: Queue) -> bool:
    """Whether a queue's own state is open; one without a state is."""
    return queue.status.state in _OPEN


def amounts_of(queue: Queue) -> Mapping[str, Mapping[str, Quantity]]:
    """Return the quantities of a queue by field."""
    spec = queue.spec
    return {
        CAPABILITY: spec.capability,
        DESERVED: spec.deserved,
        GUARANTEE: spec.guarantee.resource,
    }


def promises_of(queue: Queue) -> Promises:
    """Return `deserved` and `guarantee` of a queue by field; invalid ones count as empty."""
    said = amounts_of(queue)
    return {place: readable(said[place]) for place in NO_PROMISES}


def _changed(total: Promises, change: Promises, sign: int) -> Promises:
    if sign > 0:
        return {place: total[place] + change[place] for place in total}
    return {place: total[place] - change[place] for place in total}
