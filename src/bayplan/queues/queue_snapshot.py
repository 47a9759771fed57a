"""The queues of a cluster at one moment: what each has, and which groups wait for what.

It is what a scheduler would find that starts now, and nothing in the cluster is changed. Groups
have their turns by the scheduler's own engine (`turns`), without nodes: a group that quota admits
takes it before the next has its turn, so that of two groups for the last quota the second waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import msgspec

from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import POD_SCHEDULED, Pod
from bayplan.kube.volcano import ROOT_QUEUE, PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues.accounts import Usage
from bayplan.queues.admission import Admitted
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger, PriorityOf
from bayplan.queues.members import Gate, Member, TaskStatus
from bayplan.queues.observed_queues import ObservedQueues
from bayplan.queues.orders import group_order
from bayplan.queues.policies import QueuePolicyName
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.queue_quota import Quota
from bayplan.queues.requests import Stage, pod_requests_of
from bayplan.queues.resources import NOTHING, Resources
from bayplan.queues.tree import QueueNode
from bayplan.queues.turns import SchedulingTurns

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
    request: Resources
    """What it needs of the quota next."""
    code: WaitCode | None
    """What it waits for; None if its queue has quota for it."""
    text: str

    @property
    def is_for_queue(self) -> bool:
        """Whether it waits for its queue, and not for nodes."""
        return self.code not in {None, WaitCode.NO_NODE}


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
class QueueSnapshot:
    """All queues, in the order of the tree, and the groups whose queue does not exist."""

    queues: tuple[QueueView, ...]
    astray: tuple[WaitingGroup, ...]

    def waiting(self) -> Iterator[WaitingGroup]:
        """Return every waiting group."""
        for queue in self.queues:
            yield from queue.waiting
        yield from self.astray


def queue_snapshot(
    objects: Iterable[KubeObject],
    *,
    priority_of: PriorityOf = lambda _: 0,
    is_ours: Callable[[Pod], bool] = lambda _: True,
    policy: QueuePolicyName = "capacity",
    shared: Resources | None = None,
) -> QueueSnapshot:
    """Look at the queues, groups and pods of a cluster."""
    ledger = Ledger(policy=policy, priority_of=priority_of)
    if shared is not None:
        ledger.set_shared(shared)
    registry = fill(ledger, objects, is_ours)
    found = views(ledger)  # before any group is admitted
    waiting = _Inquiry(registry).waiting_groups()
    queues = [replace(one, waiting=tuple(waiting.pop(one.node.name, ()))) for one in found]
    return QueueSnapshot(tuple(queues), tuple(one for line in waiting.values() for one in line))


def priorities_in(objects: Iterable[KubeObject]) -> PriorityOf:
    """Return a function from the names of priority classes to their values.

    Without a name, the value of the default class, the lowest if there are several.
    """
    classes = [one for one in objects if isinstance(one, PriorityClass)]
    values = {one.name: one.value for one in classes}
    values[""] = min((one.value for one in classes if one.global_default), default=0)
    return lambda name: values.get(name, 0)


def fill(
    ledger: Ledger, objects: Iterable[KubeObject], is_ours: Callable[[Pod], bool]
) -> ObservedQueues:
    """Enter the queues, groups and pods of a cluster in a ledger, as a scheduler would that starts
    now.
    """
    registry = ObservedQueues(ledger, is_ours)
    for one in objects:
        _see(registry, one)
    registry.recover()
    return registry


def _see(registry: ObservedQueues, one: KubeObject) -> None:
    if isinstance(one, Queue):
        registry.ledger.put_queue(one)
    elif isinstance(one, PodGroup):
        registry.observe_group(one)
    elif isinstance(one, Pod):
        registry.observe_pod(one if one.metadata.uid else _known_by_name(one))


def _known_by_name(pod: Pod) -> Pod:
    """Return a pod of a manifest with its key as its uid: groups are distinguished by uid."""
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
    """Return every queue as it is in the ledger, without waiting groups."""
    problems: dict[str, list[str]] = {}
    for problem in ledger.tree.problems:
        problems.setdefault(problem.queue, []).append(problem.text)
    return [_view(ledger, name, tuple(problems.get(name, ()))) for name in _names(ledger)]


def _view(ledger: Ledger, name: str, problems: tuple[str, ...]) -> QueueView:
    node, depth = ledger.tree.nodes[name], len(ledger.tree.path(name)) - 1
    quota, usage, share = ledger.quota(name), ledger.usage(name), ledger.share(name)
    return QueueView(node, depth, quota, usage, share, problems)


def _in_turn(ledger: Ledger) -> list[Group]:
    """Return the waiting groups by queue, in the order in which they are served."""
    waiting = [group for group in ledger.groups.values() if _waits(group)]
    return sorted(waiting, key=lambda group: (group.queue, group_order(group)))


def _waits(group: Group) -> bool:
    """Whether it has pods without a node, or no pods and has not begun."""
    if group.count(TaskStatus.PENDING):
        return True
    return group.is_known and not group.members and group.phase not in _OVER


class _Inquiry:
    """All groups that wait, given their turns without nodes."""

    def __init__(self, registry: ObservedQueues) -> None:
        self._ledger = registry.ledger
        self._candidates = registry.candidates
        self._turns = SchedulingTurns(
            registry.ledger, registry.candidates, _stage_of, self._problem_of
        )
        self._reasons: dict[str, QueueReason | None] = {}
        """By group why it waits; None if its queue has quota for it."""

    def waiting_groups(self) -> dict[str, list[WaitingGroup]]:
        """Return the groups that wait, by queue, and for what."""
        groups = _in_turn(self._ledger)
        requests = {group.key: self._update(group) for group in groups}
        while (turn := self._turns.next(0.0)) is not None:
            decided = self._turns.decide(turn, 0.0)
            if isinstance(decided, Admitted):
                self._admit(turn.group, decided)
        waiting: dict[str, list[WaitingGroup]] = {}
        for group in groups:
            line = waiting.setdefault(group.queue, [])
            line.append(self._waiting_group(group, requests[group.key], len(line) + 1))
        return waiting

    def _waiting_group(self, group: Group, request: Resources, position: int) -> WaitingGroup:
        pending = list(group.of_status(TaskStatus.PENDING))
        order = self._turns.order
        in_order = group.key in order
        reason = order.refusal(group.key) if in_order else self._reasons.get(group.key)
        return WaitingGroup(
            group=group.key,
            queue=group.queue,
            position=position,
            pods=tuple(sorted(one.key for one in pending)),
            gated=sum(one.gate in _OURS for one in pending),
            request=request,
            code=reason.code if reason is not None else None,
            text=str(reason) if reason is not None else "its queue has quota for it",
        )

    def _problem_of(self, group: Group) -> QueueReason | None:
        if not group.is_known:
            text = f"PodGroup {group.key} does not exist"
            return QueueReason(WaitCode.BAD_GROUP, group.queue, text)
        return self._ledger.tree.refusal(group.queue)

    def _update(self, group: Group) -> Resources:
        """Enter what a group requests now; returns what it needs of the quota next."""
        reason = self._turns.update(group, 0.0)
        if group.key in self._turns.order:
            pods = pod_requests_of(group, self._candidates, _stage_of)
            return pods[0].quota.request if isinstance(pods, tuple) else NOTHING
        if reason is None and all(_is_foreign(one) for one in group.of_status(TaskStatus.PENDING)):
            text = "its pods are held by others' gates"
            reason = QueueReason(WaitCode.FOREIGN_GATE, group.queue, text)
        self._reasons[group.key] = reason
        return NOTHING

    def _admit(self, group: Group, decided: Admitted) -> None:
        for member in decided.members:
            if not member.reserved:
                self._ledger.reserve(member)
        if decided.members:
            self._reasons[group.key] = _no_node(group)
        else:
            self._update(group)


def _is_foreign(member: Member) -> bool:
    return member.gate is Gate.FOREIGN


def _no_node(group: Group) -> QueueReason | None:
    """Return why no node fits the pods of a group that quota admits, by their conditions."""
    for member in group.of_status(TaskStatus.PENDING):
        for one in member.pod.status.conditions:
            if (
                one.type == POD_SCHEDULED
                and one.reason == "Unschedulable"
                and member.gate is Gate.NONE
            ):
                return QueueReason(WaitCode.NO_NODE, group.queue, one.message or "no node fits")
    return None


def _stage_of(member: Member) -> Stage:
    """Return the stage of a pod, as far as its object shows."""
    if member.gate is Gate.FOREIGN:
        return Stage.ELSEWHERE
    return Stage.HELD if member.gate is Gate.NONE else Stage.GATED
