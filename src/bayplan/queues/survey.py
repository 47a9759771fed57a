"""Queues as somebody finds them who looks at a cluster once: what each has, and who waits for what.

It is what a scheduler would find that starts now, and nothing in the cluster is changed. Groups
have their turns in the scheduler's order and by its decisions (`queue_order`, `admission`), without
nodes: who has room takes it before the next is asked, so that of two groups for one place the
second is told that there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import POD_SCHEDULED, Pod
from bayplan.kube.queueing import ROOT_QUEUE, PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues.accounts import Usage
from bayplan.queues.admission import Admitted, decide_turn
from bayplan.queues.asks import Asking, Stage, asks_of, pod_asks_of
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger, PriorityOf
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.orders import group_order, queue_order
from bayplan.queues.policies import QueuePolicyName
from bayplan.queues.problems import NoRoom, Why
from bayplan.queues.queue_order import QueueOrder, Turn
from bayplan.queues.quota import Quota
from bayplan.queues.registry import QueueRegistry
from bayplan.queues.resources import NOTHING, Resources
from bayplan.queues.tree import QueueNode

_OVER = ("Completed", "Running")
_OURS = (Gate.OURS, Gate.OURS_UNASKED)


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """A group that has pods without a node, and what it waits for."""

    group: str
    queue: str
    position: int
    """Its place among those that wait in its queue, from 1."""
    pods: tuple[str, ...]
    gated: int
    """How many of these have our gate."""
    asks: Resources
    """What it needs of the quota next."""
    why: Why | None
    """What it waits for; None if its queue has room for it."""
    text: str

    @property
    def is_for_queue(self) -> bool:
        """Whether it waits for its queue, and not for nodes."""
        return self.why not in {None, Why.NO_NODE}


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
    registry = fill(ledger, objects, is_ours)
    found = views(ledger)  # before anybody is let in
    waiting = _Inquiry(registry).waiting_groups()
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


def fill(
    ledger: Ledger, objects: Iterable[KubeObject], is_ours: Callable[[Pod], bool]
) -> QueueRegistry:
    """Enter the queues, groups and pods of a cluster in the books, as a scheduler would that
    starts now.
    """
    registry = QueueRegistry(ledger, is_ours)
    for one in objects:
        _see(registry, one)
    registry.recover()
    return registry


def _see(registry: QueueRegistry, one: KubeObject) -> None:
    if isinstance(one, Queue):
        registry.ledger.put_queue(one)
    elif isinstance(one, PodGroup):
        registry.see_group(one)
    elif isinstance(one, Pod):
        registry.see_pod(one if one.metadata.uid else _known_by_name(one))


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


class _Inquiry:
    """All groups that wait, given their turns once each."""

    def __init__(self, registry: QueueRegistry) -> None:
        self._ledger = registry.ledger
        self._candidates = registry.candidates
        self._order = QueueOrder(registry.ledger)
        self._answers: dict[str, NoRoom | None] = {}
        """By group why it waits; None if its queue has room for it."""

    def waiting_groups(self) -> dict[str, list[WaitingGroup]]:
        """By queue those who wait in it, and for what."""
        groups = _in_turn(self._ledger)
        asks = {group.key: self._line_up(group) for group in groups}
        while (turn := self._next()) is not None:
            self._serve(*turn)
        waiting: dict[str, list[WaitingGroup]] = {}
        for group in groups:
            line = waiting.setdefault(group.queue, [])
            line.append(self._told(group, asks[group.key], len(line) + 1))
        return waiting

    def _told(self, group: Group, asks: Resources, position: int) -> WaitingGroup:
        pending = list(group.of_status(Status.PENDING))
        no_room = self._answer(group)
        return WaitingGroup(
            group=group.key,
            queue=group.queue,
            position=position,
            pods=tuple(sorted(one.key for one in pending)),
            gated=sum(one.gate in _OURS for one in pending),
            asks=asks,
            why=no_room.why if no_room is not None else None,
            text=str(no_room) if no_room is not None else "its queue has room for it",
        )

    def _answer(self, group: Group) -> NoRoom | None:
        if group.key in self._order:
            return self._order.refusal(group.key)
        return self._answers.get(group.key)

    # -- turns ---------------------------------------------------------------------------------

    def _line_up(self, group: Group) -> Resources:
        """Have a group wait for its turn, or say why it cannot; what it needs of the quota next."""
        asked = self._asked(group)
        if isinstance(asked, tuple):
            self._order.put(group, [one.ask for one in asked], now=0.0)
            pods = pod_asks_of(group, self._candidates, _stage_of)
            return pods[0].ask.request if isinstance(pods, tuple) else NOTHING
        if asked is None and all(_is_foreign(one) for one in group.of_status(Status.PENDING)):
            text = "its pods are held by others' gates"
            asked = NoRoom(Why.FOREIGN_GATE, group.queue, text)
        self._answers[group.key] = asked
        return NOTHING

    def _asked(self, group: Group) -> tuple[Asking, ...] | NoRoom | None:
        if not group.is_known:
            text = f"PodGroup {group.key} does not exist"
            return NoRoom(Why.BAD_GROUP, group.queue, text)
        refusal = self._ledger.tree.refusal(group.queue)
        return refusal or asks_of(group, self._candidates, _stage_of)

    def _next(self) -> tuple[Turn, bool] | None:
        """The next turn, and whether it is of those who ask for more than their queues deserve."""
        if (turn := self._order.next(0.0)) is not None:
            return turn, False
        beyond = self._order.next_beyond(0.0)
        return None if beyond is None else (beyond, True)

    def _serve(self, turn: Turn, beyond: bool) -> None:
        key, ask = turn
        group, asked = self._ledger.groups[key], self._asked(self._ledger.groups[key])
        found = asked if isinstance(asked, tuple) else ()
        asking = next((one for one in found if one.ask == ask), None)
        if asking is None:
            self._order.remove(key)
            self._line_up(group)
            return
        decided = decide_turn(self._ledger, group, asking, beyond_share=beyond)
        if isinstance(decided, NoRoom):
            self._order.refuse(turn, decided, 0.0)
            return
        self._order.remove(key)
        self._let_in(group, decided)

    def _let_in(self, group: Group, decided: Admitted) -> None:
        for member in decided.members:
            if not member.reserved:
                self._ledger.reserve(member)
        if decided.members:
            self._answers[group.key] = _no_node(group)
        else:
            self._line_up(group)


def _is_foreign(member: Member) -> bool:
    return member.gate is Gate.FOREIGN


def _no_node(group: Group) -> NoRoom | None:
    """What a pod of a group that has room was told of nodes."""
    for member in group.of_status(Status.PENDING):
        for one in member.pod.status.conditions:
            if (
                one.type == POD_SCHEDULED
                and one.reason == "Unschedulable"
                and member.gate is Gate.NONE
            ):
                return NoRoom(Why.NO_NODE, group.queue, one.message or "no node fits")
    return None


def _stage_of(member: Member) -> Stage:
    """Where a pod stands, as far as its object tells."""
    if member.gate is Gate.FOREIGN:
        return Stage.ELSEWHERE
    return Stage.HELD if member.gate is Gate.NONE else Stage.GATED
