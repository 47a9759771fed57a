"""What a group asks for in its turn: the pods that it needs to start, or else one more.

A gang that has not started asks for all the pods that it still needs at once: of each task as many
as that needs, then whoever comes first. Those that quota holds already for it come before others,
so that a gang that was let in half, by somebody who did not come to the end, is let in whole. A
group that has started, or that any one of its pods can start, asks for one pod a turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from bayplan.queues import NOTHING, Group, Member, NoRoom, Resources, Status, Why
from bayplan.queues.orders import member_key


class Stage(Enum):
    """Where a pod without a node stands on its way."""

    GATED = "gated"
    """Only our gate holds it."""
    COMING = "coming"
    """Its gate is being removed, or it is being decided."""
    HELD = "held"
    """It can be tried."""
    RESTING = "resting"
    """It was refused by nodes, and waits for something to help it."""
    ELSEWHERE = "elsewhere"
    """Others hold it, or it is on its way out."""


_GOES = (Stage.GATED, Stage.HELD)
_WITH_OTHERS = (*_GOES, Stage.RESTING, Stage.COMING)


@dataclass(frozen=True, slots=True)
class Asking:
    """Some pods of a group, to be let in and tried together."""

    members: tuple[Member, ...]
    is_gang: bool
    """Whether they start together or not at all."""

    @property
    def ask(self) -> Resources:
        """What they need of the quota beyond what is held for them."""
        return sum((one.request for one in self.members if not one.reserved), NOTHING)


StageOf = Callable[[Member], Stage]


class Candidates:
    """The pods of each group that may go: those for which quota is held, then in their order."""

    def __init__(self) -> None:
        self._of: dict[str, list[tuple[bool, Any, str]]] = {}
        self._known: dict[str, set[tuple[bool, str]]] = {}

    def put(self, member: Member) -> None:
        """A pod may go, for all that is known."""
        known = self._known.setdefault(member.group, set())
        if (not member.reserved, member.key) in known:
            return
        known.add((not member.reserved, member.key))
        waiting = self._of.setdefault(member.group, [])
        heapq.heappush(waiting, (not member.reserved, member_key(member), member.key))

    def first(self, group: Group, stage_of: StageOf) -> Member | None:
        """The first that still may; those that may not are forgotten."""
        waiting = self._of.get(group.key, [])
        while waiting:
            member = group.members.get(waiting[0][2])
            if member is not None and stage_of(member) in _GOES:
                return member
            unreserved, _, key = heapq.heappop(waiting)
            self._known[group.key].discard((unreserved, key))
        self.forget(group.key)
        return None

    def forget(self, group: str) -> None:
        """The group is gone."""
        self._of.pop(group, None)
        self._known.pop(group, None)


def what_is_asked(
    group: Group, candidates: Candidates, stage_of: StageOf
) -> Asking | NoRoom | None:
    """What a group asks for now; why it cannot, whatever the room; None if there is nothing."""
    why = group.invalid
    if group.is_ready or (why is None and not group.is_gang):
        first = candidates.first(group, stage_of)
        if first is not None:
            return Asking((first,), is_gang=False)
    if group.is_ready:
        return None
    if why is not None:
        return NoRoom(why, group.queue, _too_few(group, why))
    gang = _gang(group, stage_of)
    if gang is None:
        return NoRoom(Why.FOREIGN_GATE, group.queue, "pods that it needs are held by others' gates")
    stages = {stage_of(one) for one in gang}
    if Stage.COMING in stages or not stages.intersection(_GOES):
        return None
    return Asking(tuple(gang), len(gang) > 1)


def _gang(group: Group, stage_of: StageOf) -> list[Member] | None:
    """The pods that a group needs to start; None if too many are held by others."""
    pending = group.of_status(Status.PENDING)
    able = [one for one in pending if stage_of(one) in _WITH_OTHERS]
    able.sort(key=lambda one: (not one.reserved, member_key(one)))
    needed = group.min_member - group.ready_count
    chosen: dict[str, Member] = {}
    if group.counts_roles:
        placed = group.role_counts()
        for role, least in group.min_of_role.items():
            of_role = [one for one in able if one.role == role][: max(least - placed[role], 0)]
            if len(of_role) < least - placed[role]:
                return None
            chosen.update((one.key, one) for one in of_role)
    for one in able:
        if len(chosen) >= needed:
            break
        chosen.setdefault(one.key, one)
    return list(chosen.values()) if len(chosen) >= needed else None


def _too_few(group: Group, why: Why) -> str:
    if why is Why.NOT_ENOUGH_PODS:
        there = group.ready_count + group.count(Status.PENDING, Status.PIPELINED)
        return f"it has {there} pods, and needs {group.min_member} to start"
    return "it has fewer pods of a task than that needs to start"
