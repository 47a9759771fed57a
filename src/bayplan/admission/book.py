"""All queues by name, and those below each: what a new one is judged against.

`root` and `default` are in it whether or not somebody made them. It follows the cluster, so it may
be a moment behind; what slips in meanwhile, the scheduler tells of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from bayplan.client import Change
from bayplan.kube.meta import ObjectMeta, Quantity
from bayplan.kube.queueing import DEFAULT_QUEUE, ROOT_QUEUE, Queue
from bayplan.queues.tree import MAX_DEPTH

BUILT_IN = (ROOT_QUEUE, DEFAULT_QUEUE)
_ALWAYS = {name: Queue(metadata=ObjectMeta(name=name)) for name in BUILT_IN}
_OPEN = ("Open", "")


class QueueBook:
    """The queues there are."""

    def __init__(self, queues: Iterable[Queue] = ()) -> None:
        self._queues: dict[str, Queue] = {}
        self._below: dict[str, dict[str, None]] = {}
        for queue in queues:
            self.put(queue)

    def get(self, name: str) -> Queue | None:
        """A queue by name."""
        return self._queues.get(name) or _ALWAYS.get(name)

    def below(self, name: str) -> list[Queue]:
        """The queues whose parent that is."""
        return [self._queues[child] for child in self._below.get(name, ())]

    def above(self, queue: Queue) -> Iterator[Queue | str]:
        """Its parent, that one's parent and so on, without the root; the name of one that is not
        there ends it, and so do more than can be, as there are in a cycle.
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
        """The queue, it or the nearest above it, that is not open; None if all are."""
        lineage = (queue, *(one for one in self.above(queue) if isinstance(one, Queue)))
        return next((one for one in lineage if not is_open(one)), None)

    def put(self, queue: Queue) -> None:
        """A queue is there, or has changed."""
        self.drop(queue.name)
        self._queues[queue.name] = queue
        self._below.setdefault(parent_of(queue), {})[queue.name] = None

    def drop(self, name: str) -> None:
        """A queue is gone."""
        queue = self._queues.pop(name, None)
        if queue is not None:
            self._below[parent_of(queue)].pop(name)

    def take(self, change: Change[Queue]) -> None:
        """What an informer tells."""
        if change.type == "deleted":
            self.drop(change.object.name)
        else:
            self.put(change.object)

    def __len__(self) -> int:
        return len(self._queues)


def parent_of(queue: Queue) -> str:
    """The name of a queue's parent; the root has none, and says itself."""
    return ROOT_QUEUE if queue.name == ROOT_QUEUE else queue.spec.parent or ROOT_QUEUE


def is_open(queue: Queue) -> bool:
    """Whether a queue's own state lets work in; one that nobody has looked at yet does."""
    return queue.status.state in _OPEN


def amounts_of(queue: Queue) -> Mapping[str, Mapping[str, Quantity]]:
    """Every map of quantities in a queue, by its field."""
    spec = queue.spec
    return {
        "spec.capability": spec.capability,
        "spec.deserved": spec.deserved,
        "spec.guarantee.resource": spec.guarantee.resource,
    }
