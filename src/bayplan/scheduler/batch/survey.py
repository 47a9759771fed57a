"""Queues as somebody finds them who looks at a cluster once: what each has, and who waits for what.

It is what a scheduler would find that starts now, and it decides nothing. Groups are asked in the
order of their turns (`inquiry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from bayplan.client import Change
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import ROOT_QUEUE, PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues import (
    Group,
    Ledger,
    QueueNode,
    QueuePolicyName,
    Quota,
    Resources,
    Status,
    Usage,
)
from bayplan.queues.ledger import PriorityOf
from bayplan.scheduler.batch.book import Book
from bayplan.scheduler.batch.inquiry import Inquiry, WaitingGroup
from bayplan.scheduler.batch.ordering import group_order, queue_order

_OVER = ("Completed", "Running")


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue: what it may have, what it has, and who waits in it."""

    node: QueueNode
    depth: int
    quota: Quota
    usage: Usage
    share: float
    problems: tuple[str, ...]
    waiting: tuple[WaitingGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class Survey:
    """All queues, in the order of the tree, and the groups whose queue does not exist."""

    queues: tuple[QueueView, ...]
    astray: tuple[WaitingGroup, ...]

    def waiting(self) -> Iterator[WaitingGroup]:
        """Every group that waits."""
        for queue in self.queues:
            yield from queue.waiting
        yield from self.astray


def survey(
    objects: Iterable[KubeObject],
    *,
    priority_of: PriorityOf = lambda _: 0,
    is_ours: Callable[[Pod], bool] = lambda _: True,
    policy: QueuePolicyName = "capacity",
    shared: Resources | None = None,
) -> Survey:
    """Look at the queues, groups and pods of a cluster."""
    ledger = Ledger(policy=policy, priority_of=priority_of)
    if shared is not None:
        ledger.set_shared(shared)
    book = fill(ledger, objects, is_ours)
    found = views(ledger)  # before anybody is let in
    waiting = Inquiry(book).ask_all(_in_turn(ledger))
    queues = [replace(one, waiting=tuple(waiting.pop(one.node.name, ()))) for one in found]
    return Survey(tuple(queues), tuple(one for line in waiting.values() for one in line))


def priorities_in(objects: Iterable[KubeObject]) -> PriorityOf:
    """What the priority classes among these objects are worth; without a name, the
    default's, the lowest if there are several.
    """
    classes = [one for one in objects if isinstance(one, PriorityClass)]
    values = {one.name: one.value for one in classes}
    values[""] = min((one.value for one in classes if one.global_default), default=0)
    return lambda name: values.get(name, 0)


def fill(ledger: Ledger, objects: Iterable[KubeObject], is_ours: Callable[[Pod], bool]) -> Book:
    """Enter the queues, groups and pods of a cluster in the books, as a scheduler would that
    starts now.
    """
    book = Book(ledger, is_ours)
    for one in objects:
        _see(book, one)
    book.recover()
    return book


def _see(book: Book, one: KubeObject) -> None:
    if isinstance(one, Queue):
        book.see_queue(Change("added", new=one))
    elif isinstance(one, PodGroup):
        book.see_group(Change("added", new=one))
    elif isinstance(one, Pod):
        book.see_pod(one if one.metadata.uid else _known_by_name(one))


def _known_by_name(pod: Pod) -> Pod:
    """A pod that was written by hand, as if it had been made: groups are told apart by uid."""
    meta = msgspec.structs.replace(pod.metadata, uid=pod.key)
    return msgspec.structs.replace(pod, metadata=meta)


def _names(ledger: Ledger) -> Iterator[str]:
    """Queues below their parents, and at last those that no path leads to."""
    nodes, told, waiting = ledger.tree.nodes, set(), [ROOT_QUEUE]
    while waiting:
        name = waiting.pop()
        told.add(name)
        yield name
        waiting += reversed(nodes[name].children)
    yield from sorted(nodes.keys() - told)


def views(ledger: Ledger) -> list[QueueView]:
    """Every queue as it stands in the books, without those who wait."""
    problems: dict[str, list[str]] = {}
    for problem in ledger.tree.problems:
        problems.setdefault(problem.queue, []).append(problem.text)
    return [_view(ledger, name, tuple(problems.get(name, ()))) for name in _names(ledger)]


def _view(ledger: Ledger, name: str, problems: tuple[str, ...]) -> QueueView:
    node, depth = ledger.tree.nodes[name], len(ledger.tree.path(name)) - 1
    quota, usage, share = ledger.quota(name), ledger.usage(name), ledger.share(name)
    return QueueView(node, depth, quota, usage, share, problems)


def _in_turn(ledger: Ledger) -> list[Group]:
    """The groups that wait for something, in the order of their turns."""
    orders = {group.queue: queue_order(ledger, group.queue) for group in ledger.groups.values()}
    waiting = [group for group in ledger.groups.values() if _waits(group)]
    return sorted(waiting, key=lambda group: (orders[group.queue], group_order(group)))


def _waits(group: Group) -> bool:
    """Whether it has pods without a node, or no pods and has not begun."""
    if group.count(Status.PENDING):
        return True
    return group.is_known and not group.members and group.phase not in _OVER
