"""Room made for groups that cannot start: in their own queue, or in others.

What is decided is decided by `bayplan.queues` in a fork of the snapshot, and taken back: who leaves
is sent away like any victim of preemption, and nodes are kept for those who wait for that. The
quota and the room that victims leave are had in the next turns, by whoever comes first, which is
the group they leave for. As long as they are on their way out, nobody else has to leave for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable

from bayplan.queues import Gate, Group, Ledger, Member, Status
from bayplan.queues.actions.eviction import preempt_for, reclaim_for
from bayplan.queues.members import status_of
from bayplan.queues.placement import SnapshotPlacement
from bayplan.queues.session import Plan, Session
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.preemption import Preemptions

log = logging.getLogger(__name__)
PAUSE = 5.0
"""Seconds before room is looked for again for a group for which there was none."""


class Evictions:
    """Makes room, one group at a time."""

    def __init__(self, context: SchedulerContext, ledger: Ledger, preemptions: Preemptions) -> None:
        self._context = context
        self._ledger = ledger
        self._preemptions = preemptions
        self._victims: dict[str, dict[str, str]] = {}
        """By group those who leave for it: their keys and uids."""
        self._looked: dict[str, float] = {}

    def forget(self, group: str) -> None:
        """The group is gone, or can start."""
        self._victims.pop(group, None)
        self._looked.pop(group, None)

    def make_room(self, group: Group, now: float, *, in_other_queues: bool) -> bool:
        """Have others leave for a group that cannot start; whether somebody does."""
        if not group.is_starving or self._are_leaving(group.key):
            return False
        if now - self._looked.get(group.key, -PAUSE) < PAUSE:
            return False
        self._looked[group.key] = now
        plan = self._planned(group, in_other_queues=in_other_queues)
        if plan is None or not plan.evicted:
            return False
        self._carry_out(group, plan)
        return True

    def _are_leaving(self, group: str) -> bool:
        victims = self._victims.get(group, {})
        there = (self._ledger.members.get(key) for key in victims)
        uids = {one.pod.metadata.uid for one in there if one is not None and one.node}
        return not uids.isdisjoint(victims.values())

    def _planned(self, group: Group, *, in_other_queues: bool) -> Plan | None:
        """What would make room for a group; nothing has changed after it."""
        before = {one.key: one.reserved for one in group.of_status(Status.PENDING)}
        with self._context.snapshot.fork() as snapshot:
            placement = SnapshotPlacement(snapshot, self._ledger.leaving())
            session = Session(self._ledger, placement, snapshot.budgets)
            try:
                made = preempt_for(session, group)
                if not made and in_other_queues:
                    made = reclaim_for(session, group)
            finally:
                self._undo(session.plan, before)
        return session.plan if made else None

    def _undo(self, plan: Plan, before: dict[str, bool]) -> None:
        for one in plan.evicted:
            victim = self._ledger.members[one.pod]
            self._ledger.move(victim, status_of(victim.pod))
        for key, reserved in before.items():
            member = self._ledger.members[key]
            member.node = ""
            self._ledger.move(member, Status.PENDING, reserved=reserved)

    def _carry_out(self, group: Group, plan: Plan) -> None:
        members, context = self._ledger.members, self._context
        victims: defaultdict[str, list[Member]] = defaultdict(list)
        for one in plan.evicted:
            victims[one.preemptor].append(members[one.pod])
        self._victims[group.key] = _uids(members[one.pod] for one in plan.evicted)
        for key, leaving in victims.items():
            pods, node = [one.pod for one in leaving], leaving[0].node
            context.told.metrics.preempted(len(pods))
            self._preemptions.start(members[key].pod, pods, node)
        for placed in plan.pipelined:
            self._keep(members[placed.pod], placed.node)
        keys = [one.pod for one in plan.evicted]
        log.info("makes room", extra={"group": group.key, "victims": keys})

    def _keep(self, member: Member, node: str) -> None:
        """Keep a node for a pod that can be tried; one with a gate has to be let in first."""
        if member.gate is Gate.NONE:
            self._context.snapshot.nominate(member.pod, node)
            self._context.statuses.say(member.pod, None, node)


def _uids(members: Iterable[Member]) -> dict[str, str]:
    return {one.key: one.pod.metadata.uid for one in members}
