"""Requests of groups in a turn: admission, the pods of its minimum, or one more pod.

A gang that has not started requests all the pods that it still needs at once: of each task as many
as that needs, then in their order. Pods for which quota is reserved already come before others, so
that a gang that was admitted in part, by a scheduler that was stopped, is admitted whole.
Where the gang has more pods than it needs, the others are its spare pods: they go instead of those
that quota or nodes refuse.

A group that has started, or that any one of its pods can start, requests one pod a turn: the first
of each size, so that a pod that exceeds the quota does not block smaller ones.

Before all that a group requests to be admitted, whether or not it has its pods yet: the controllers
of jobs create them only once their group has left the phase Pending.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from bayplan.queues.groups import Group
from bayplan.queues.members import Member, TaskStatus
from bayplan.queues.orders import member_key
from bayplan.queues.problems import QueueReason, WaitCode
from bayplan.queues.resources import NOTHING, Resources


class Stage(Enum):
    """The state of a pod without a node, as its group's requests see it."""

    GATED = "gated"
    """Only our gate holds it."""
    COMING = "coming"
    """Its gate is being removed, or it is being decided."""
    HELD = "held"
    """It can be tried."""
    RESTING = "resting"
    """No node fits it; it waits for an event."""
    ELSEWHERE = "elsewhere"
    """It has a foreign gate, or is not to be placed."""


_GOES = (Stage.GATED, Stage.HELD)
_WITH_OTHERS = (*_GOES, Stage.RESTING, Stage.COMING)
StageOf = Callable[[Member], Stage]


class QuotaRequest(NamedTuple):
    """The quota that a group requests; equal requests of one queue have one answer."""

    request: Resources = NOTHING
    """What pods request beyond what is held for them."""
    needs: Resources | None = None
    """What the group needs to start (minResources), if it requests to be admitted."""
    group: str = ""
    """The group, if pods of other sizes could go instead: then the answer is its own."""


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """Pods of a group to admit and schedule together; without pods, only the group is admitted."""

    members: tuple[Member, ...]
    quota: QuotaRequest
    spare: tuple[Member, ...] = ()
    """Pods that could go instead of some of these."""
    is_gang: bool = False
    """Whether they start together or not at all."""

    @property
    def pods(self) -> tuple[Member, ...]:
        """The pods requested, then those that could go instead."""
        return self.members + self.spare


class Candidates:
    """The pods of each group that may be placed, by what they request: those for which quota is
    reserved first, then in their order.
    """

    def __init__(self) -> None:
        self._of: dict[str, dict[Resources, list[tuple[bool, Any, str]]]] = {}
        self._known: dict[str, set[tuple[bool, str]]] = {}

    def put(self, member: Member) -> None:
        """Enter a pod that may be placed."""
        known = self._known.setdefault(member.group, set())
        if (not member.reserved, member.key) in known:
            return
        known.add((not member.reserved, member.key))
        sizes = self._of.setdefault(member.group, {})
        waiting = sizes.setdefault(member.request, [])
        heapq.heappush(waiting, (not member.reserved, member_key(member), member.key))

    def firsts(self, group: Group, stage_of: StageOf) -> list[Member]:
        """Return the first of each size that still may go, in their order; those that may not are
        dropped.
        """
        heads: list[tuple[bool, Any, str]] = []
        sizes = self._of.get(group.key, {})
        for size, waiting in list(sizes.items()):
            head = self._head(group, waiting, stage_of)
            if head is None:
                del sizes[size]
            else:
                heads.append(head)
        if not heads:
            self.forget(group.key)
        return [group.members[key] for _, _, key in sorted(heads)]

    def _head(
        self, group: Group, waiting: list[tuple[bool, Any, str]], stage_of: StageOf
    ) -> tuple[bool, Any, str] | None:
        while waiting:
            member = group.members.get(waiting[0][2])
            if member is not None and stage_of(member) in _GOES:
                return waiting[0]
            unreserved, _, key = heapq.heappop(waiting)
            self._known[group.key].discard((unreserved, key))
        return None

    def forget(self, group: str) -> None:
        """Drop a group that is gone."""
        self._of.pop(group, None)
        self._known.pop(group, None)


def requests_of(
    group: Group, candidates: Candidates, stage_of: StageOf
) -> tuple[GroupRequest, ...] | QueueReason | None:
    """Return what a group requests now, any of these; why it cannot, whatever the quota; None if it
    requests nothing.
    """
    if group.is_pending and (group.count(TaskStatus.PENDING) or not group.allocated_count):
        return (GroupRequest((), QuotaRequest(needs=group.needs)),)
    return pod_requests_of(group, candidates, stage_of)


def pod_requests_of(
    group: Group, candidates: Candidates, stage_of: StageOf
) -> tuple[GroupRequest, ...] | QueueReason | None:
    """Return what a group requests once it is admitted."""
    why = group.invalid
    if group.is_ready or (why is None and not group.is_gang):
        firsts = candidates.firsts(group, stage_of)
        if firsts:
            return tuple(_one_more(firsts))
    if group.is_ready:
        return None
    if why is not None:
        return QueueReason(why, group.queue, _too_few(group, why))
    gang = _gang(group, stage_of)
    if gang is None:
        text = "pods that it needs are held by others' gates"
        return QueueReason(WaitCode.FOREIGN_GATE, group.queue, text)
    stages = {stage_of(one) for one in gang.members}
    may_go = stages.intersection(_GOES) or any(stage_of(one) is Stage.HELD for one in gang.spare)
    return None if Stage.COMING in stages or not may_go else (gang,)


def _one_more(firsts: Iterable[Member]) -> Iterable[GroupRequest]:
    """Yield a request for one pod more, of each size; those with reserved quota need none."""
    seen: set[QuotaRequest] = set()
    for member in firsts:
        quota = QuotaRequest(NOTHING if member.reserved else member.request)
        if quota not in seen:
            seen.add(quota)
            yield GroupRequest((member,), quota)


def _gang(group: Group, stage_of: StageOf) -> GroupRequest | None:
    """Return the pods of a group's minimum; None if other gates hold too many."""
    pending = group.of_status(TaskStatus.PENDING)
    able = [one for one in pending if stage_of(one) in _WITH_OTHERS]
    able.sort(key=lambda one: (not one.reserved, member_key(one)))
    order = needed_first(group, able)
    needed = group.min_member - group.ready_count
    missing = Counter(group.min_of_role) - group.role_counts() if group.counts_roles else Counter()
    count = max(needed, missing.total())
    members, rest = order[:count], order[count:]
    if len(members) < count or missing - Counter(one.role for one in members):
        return None
    spare = tuple(one for one in rest if stage_of(one) is not Stage.COMING)
    request = sum((one.request for one in members if not one.reserved), NOTHING)
    differ = any(one.request != members[0].request for one in (*members, *spare))
    quota = QuotaRequest(request, group=group.key if spare and differ else "")
    return GroupRequest(tuple(members), quota, spare, is_gang=True)


def needed_first(group: Group, pods: Sequence[Member]) -> list[Member]:
    """Pods in their order, but first as many of each task as it needs to start."""
    if not group.counts_roles or not group.min_of_role:
        return list(pods)
    missing = Counter(group.min_of_role) - group.role_counts(ready_only=False)
    first: list[Member] = []
    rest: list[Member] = []
    for member in pods:
        (first if missing[member.role] > 0 else rest).append(member)
        missing[member.role] -= 1
    return first + rest


def _too_few(group: Group, why: WaitCode) -> str:
    if why is WaitCode.NOT_ENOUGH_PODS:
        there = group.ready_count + group.count(TaskStatus.PENDING, TaskStatus.PIPELINED)
        return f"it has {there} pods, and needs {group.min_member} to start"
    return "it has fewer pods of a task than that needs to start"
