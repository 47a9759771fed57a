"""The tree of queues, and what each may have.

Queues name their parents; those that name none are children of `root`. `root` and `default` are
there whether or not they were made. Only leaves take groups.

What is wrong with one queue is its own trouble: an amount that cannot be read, an unknown parent, a
cycle. It and the queues below it take no work until that is fixed, the others go on, and `problems`
has why. Quotas that contradict each other are reported too, but used as the formulas have it:
guarantee before deserved, capability before both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from bayplan.kube.meta import ObjectMeta
from bayplan.kube.volcano import DEFAULT_QUEUE, ROOT_QUEUE, Queue
from bayplan.queues.policies import (
    POLICIES,
    QueuePolicy,
)
from bayplan.queues.problems import Problem, QueueReason, WaitCode
from bayplan.queues.queue_quota import (
    Quota,
    child_quota,
    contradictions,
    flat_quota,
    root_quota,
    total_of,
    written_quota,
)
from bayplan.queues.resources import NOTHING, UNLIMITED, AmountError, Resources

MAX_DEPTH = 64
"""How long a path from the root may be."""


@dataclass(frozen=True, slots=True)
class QueueNode:
    """A queue and its place in the tree."""

    name: str
    queue: Queue
    path: tuple[str, ...]
    """Its own name, its parent's, and so on up to the root."""
    children: tuple[str, ...] = ()
    quota: Quota = field(default_factory=Quota)
    broken: str = ""
    """Why it takes no work, if its object or one above it is invalid."""

    @property
    def is_leaf(self) -> bool:
        """Whether it takes groups."""
        return not self.children

    @property
    def weight(self) -> int:
        """Its weight among its siblings, for the policy proportion."""
        return max(self.queue.spec.weight, 1)


@dataclass(frozen=True, slots=True)
class QueueTree:
    """All queues, and what is wrong with them."""

    nodes: Mapping[str, QueueNode]
    problems: tuple[Problem, ...] = ()
    policy: QueuePolicy = POLICIES["capacity"]
    hierarchy: bool = True
    total: Resources = UNLIMITED

    implied: ClassVar[tuple[str, ...]] = (ROOT_QUEUE, DEFAULT_QUEUE)
    """The queues that are there whether or not they were made."""

    @classmethod
    def of(
        cls,
        queues: Iterable[Queue] = (),
        *,
        total: Resources = UNLIMITED,
        policy: QueuePolicy = POLICIES["capacity"],
        hierarchy: bool = True,
    ) -> Self:
        """Return the tree of these queues, with their quotas."""
        known = {name: Queue(metadata=ObjectMeta(name=name)) for name in cls.implied}
        known.update((queue.name, queue) for queue in queues)
        builder = _Builder(known, total, hierarchy, cls.root_capability)
        return cls(builder.nodes(), tuple(builder.problems), policy, hierarchy, total)

    @staticmethod
    def root_capability(written: Resources) -> Resources:
        """Return the limit of the root, of which this is written."""
        return written

    def get(self, name: str) -> QueueNode | None:
        """Return a queue by name."""
        return self.nodes.get(name)

    def path(self, name: str) -> tuple[str, ...]:
        """Return a queue and its ancestors; empty if it is unknown."""
        node = self.nodes.get(name)
        return () if node is None else node.path

    def with_status(self, queue: Queue) -> QueueTree:
        """Return the tree with the object of a queue replaced by one with the same spec."""
        node = replace(self.nodes[queue.name], queue=queue)
        return replace(self, nodes={**self.nodes, queue.name: node})

    def is_open(self, name: str) -> bool:
        """Whether a queue and those above it are open."""
        node = self.nodes.get(name)
        if node is None:
            return False
        queues = map(self.nodes.__getitem__, self.deciding_queues(node))
        return all(self.is_open_state(one.queue.status.state) for one in queues)

    def deciding_queues(self, node: QueueNode) -> tuple[str, ...]:
        """Return the queues whose states decide whether one is open: it and those above it."""
        return node.path

    def is_open_state(self, state: str) -> bool:
        """Whether a queue of this state takes work; it has none before its first status."""
        return state in {"", "Open"}

    def refusal(self, name: str) -> QueueReason | None:
        """Return why a queue takes no work at all, whatever its quota; None if it does."""
        node = self.nodes.get(name)
        if node is None:
            return QueueReason(WaitCode.UNKNOWN_QUEUE, name, f"queue {name} does not exist")
        if node.broken:
            return QueueReason(
                WaitCode.BROKEN_QUEUE, name, f"queue {name} takes no work: {node.broken}"
            )
        if not node.is_leaf:
            return QueueReason(WaitCode.NOT_A_LEAF, name, f"queue {name} has queues below it")
        if not self.is_open(name):
            return QueueReason(WaitCode.CLOSED, name, f"queue {name} is not open")
        return None


class _Builder:
    """The making of one tree."""

    def __init__(
        self,
        queues: Mapping[str, Queue],
        total: Resources,
        hierarchy: bool,
        root_capability: Callable[[Resources], Resources],
    ) -> None:
        self._queues = queues
        self._total = total
        self._hierarchy = hierarchy
        self._root_capability = root_capability
        self.problems: list[Problem] = []
        self._unreadable: dict[str, str] = {}
        self._written = {name: self._read(queue) for name, queue in queues.items()}

    def nodes(self) -> dict[str, QueueNode]:
        """Return every queue with its quota."""
        return self._tree() if self._hierarchy else self._flat()

    def _read(self, queue: Queue) -> Quota:
        try:
            written = written_quota(queue)
        except AmountError as error:
            self._unreadable[queue.name] = str(error)
            self.problems.append(Problem(queue.name, str(error)))
            return Quota()
        for text in contradictions(written):
            self.problems.append(Problem(queue.name, text))
        if not 1 <= queue.spec.weight <= 65535:
            self.problems.append(Problem(queue.name, f"weight {queue.spec.weight} is no weight"))
        return written

    def _flat(self) -> dict[str, QueueNode]:
        guarantees = total_of(one.guarantee for one in self._written.values())
        return {
            name: QueueNode(
                name,
                queue,
                (name,),
                quota=flat_quota(self._written[name], self._total, guarantees),
                broken=self._unreadable.get(name, ""),
            )
            for name, queue in self._queues.items()
        }

    # -- the tree --------------------------------------------------------------------------------

    def _tree(self) -> dict[str, QueueNode]:
        children = self._children()
        below = [self._written[name] for name in children[ROOT_QUEUE]]
        found: dict[str, QueueNode] = {}
        waiting = [self._root(root_quota(self._root_written(), self._total, below))]
        while waiting:
            place = waiting.pop()
            below_it = tuple(sorted(children[place.name]))
            node = found[place.name] = replace(place, children=below_it)
            if len(node.path) < MAX_DEPTH:
                waiting += self._below(node)
        self._add_unreached(found)
        return found

    def _root_written(self) -> Quota:
        written = self._written[ROOT_QUEUE]
        return replace(written, capability=self._root_capability(written.capability))

    def _children(self) -> Mapping[str, list[str]]:
        children: defaultdict[str, list[str]] = defaultdict(list)
        for name in self._queues:
            if name != ROOT_QUEUE:
                children[self._parent(name)].append(name)
        return children

    def _parent(self, name: str) -> str:
        return self._queues[name].spec.parent or ROOT_QUEUE

    def _root(self, quota: Quota) -> QueueNode:
        broken = self._unreadable.get(ROOT_QUEUE, "")
        root = self._queues[ROOT_QUEUE]
        return QueueNode(ROOT_QUEUE, root, (ROOT_QUEUE,), quota=quota, broken=broken)

    def _below(self, node: QueueNode) -> Iterator[QueueNode]:
        """Return the children of a queue."""
        written = {name: self._written[name] for name in node.children}
        guarantees = total_of(one.guarantee for one in written.values())
        if node.children and node.name != ROOT_QUEUE:
            self._check_sum(node, guarantees)
        for name, own in written.items():
            quota = child_quota(own, node.quota, guarantees)
            broken = node.broken or self._unreadable.get(name, "")
            path = (name, *node.path)
            yield QueueNode(name, self._queues[name], path, quota=quota, broken=broken)

    def _check_sum(self, node: QueueNode, guarantees: Resources) -> None:
        over = guarantees.over(node.quota.guarantee, guarantees)
        if over and node.quota.guarantee != NOTHING:
            text = f"queues below it are guaranteed more {', '.join(sorted(over))} than it is"
            self.problems.append(Problem(node.name, text))

    def _add_unreached(self, found: dict[str, QueueNode]) -> None:
        """Keep the queues that no path leads to from the root, as queues that take no work."""
        reasons: dict[str, str] = {}
        for name in sorted(self._queues.keys() - found.keys()):
            text = reasons.get(name) or self._why_unreached(name, found, reasons)
            self.problems.append(Problem(name, text))
            found[name] = QueueNode(name, self._queues[name], (name,), broken=text)

    def _why_unreached(
        self, name: str, found: Mapping[str, QueueNode], reasons: dict[str, str]
    ) -> str:
        """Why no path leads to a queue, noted for all queues on the way up from it."""
        seen = {name: None}
        text = ""
        while not text:
            last = next(reversed(seen))
            parent = self._parent(last)
            if parent in found:
                text = f"{last} is more than {MAX_DEPTH} queues below the root"
            elif parent in reasons:
                text = reasons[parent]
            elif parent in seen:
                text = f"the parents of {parent} lead back to it"
            elif parent not in self._queues:
                text = f"the parent {parent} of {last} does not exist"
            seen[parent] = None
        reasons.update((one, text) for one in seen)
        return text
