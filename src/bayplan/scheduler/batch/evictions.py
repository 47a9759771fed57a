"""Evictions for groups that cannot start, decided when no group can be served any more.

`bayplan.queues` decides for all such groups together, as in a cycle, in a fork of the snapshot that
is reverted: victims are evicted like any victim of preemption, and nodes are kept for the pods that
wait for that. The quota and capacity that victims free are used in the next turns, by the group
that comes first, which is the one they were evicted for. While they are terminating, no other pod
is evicted for that group, and what it was promised is promised to no other.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from bayplan.queues import Gate, Ledger, Member, QueueReason, TaskStatus
from bayplan.queues.actions.eviction import decide_evictions
from bayplan.queues.placement import Choice, SnapshotPlacement
from bayplan.queues.session import CyclePlan, PlannedEviction, Session, Statement
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.preemption import Preemptions

log = logging.getLogger(__name__)
BETWEEN = 1.0
"""Seconds between two looks."""
PAUSE = 5.0
"""Seconds before a group that is refused again has another look taken, and for which a look waits
at most for pods whose gates are being removed.
"""


@dataclass(frozen=True, slots=True)
class _Promise:
    """The pods that are evicted for a group, and the nodes that are reserved for it."""

    victims: dict[str, str]
    """Their uids by key."""
    nodes: dict[str, str]
    """By pod of the group its node."""


class Evictions:
    """Has pods evicted for groups that cannot start."""

    def __init__(self, context: SchedulerContext, ledger: Ledger, preemptions: Preemptions) -> None:
        self._context = context
        self._ledger = ledger
        self._preemptions = preemptions
        self._promises: dict[str, _Promise] = {}
        self._refused: dict[str, float] = {}
        """By group that was refused since the last look, since when."""
        self._looked: dict[str, float] = {}
        """By group when victims were last looked for."""
        self._last = -inf

    def forget(self, group: str) -> None:
        """Forget a group that is gone, or can start."""
        for known in (self._promises, self._refused, self._looked):
            known.pop(group, None)

    def refused(self, group: str, now: float) -> None:
        """Note that a group was refused that may preempt or reclaim."""
        self._refused.setdefault(group, now)

    def due(self, *, is_ungating: bool) -> float | None:
        """Return when to look for victims; later while gates are being removed."""
        if not self._refused:
            return None
        looks = (
            max(
                self._looked.get(key, -inf) + PAUSE,
                since + PAUSE if is_ungating else since,
            )
            for key, since in self._refused.items()
        )
        return max(min(looks), self._last + BETWEEN)

    def look(self, now: float, held_up: Iterable[tuple[str, QueueReason]]) -> bool:
        """Have pods evicted for groups that cannot start, but for those that wait behind others;
        returns whether any are.
        """
        self._looked.update(dict.fromkeys(self._refused, now))
        self._refused.clear()
        self._last = now
        evicted = self._decide(held_up)
        by_group: defaultdict[str, list[PlannedEviction]] = defaultdict(list)
        for one in evicted.evicted:
            by_group[self._ledger.members[one.preemptor].group].append(one)
        for group, evictions in by_group.items():
            self._carry_out(group, evictions, evicted)
        return bool(by_group)

    def _decide(self, held_up: Iterable[tuple[str, QueueReason]]) -> CyclePlan:
        """Decide which pods are evicted; the ledger and the snapshot stay as they were."""
        with self._context.snapshot.fork() as snapshot:
            placement = SnapshotPlacement(snapshot, self._ledger.leaving())
            session = Session(self._ledger, placement, snapshot.budgets)
            for key, reason in held_up:
                session.wait(self._ledger.groups[key], reason)
            try:
                self._promise_again(session)
                decide_evictions(session)
            finally:
                session.revert()
        return session.plan

    def _promise_again(self, session: Session) -> None:
        """Keep for groups what they were promised, as long as their victims are terminating."""
        for group, promise in tuple(self._promises.items()):
            if not self._are_leaving(promise):
                del self._promises[group]
                continue
            statement = Statement(session)
            for member, node in self._waiting(promise):
                statement.take(member, Choice(node, now=False))
            statement.commit(bind=False)

    def _waiting(self, promise: _Promise) -> Iterator[tuple[Member, str]]:
        for key, node in promise.nodes.items():
            member = self._ledger.members.get(key)
            if member is not None and member.status is TaskStatus.PENDING:
                yield member, node

    def _are_leaving(self, promise: _Promise) -> bool:
        there = (self._ledger.members.get(key) for key in promise.victims)
        uids = {one.pod.metadata.uid for one in there if one is not None and one.node}
        return not uids.isdisjoint(promise.victims.values())

    def _carry_out(self, group: str, evictions: Iterable[PlannedEviction], plan: CyclePlan) -> None:
        members, context = self._ledger.members, self._context
        victims: defaultdict[str, list[Member]] = defaultdict(list)
        for one in evictions:
            victims[one.preemptor].append(members[one.pod])
        for key, leaving in victims.items():
            pods, node = [one.pod for one in leaving], leaving[0].node
            context.recorders.metrics.preempted(len(pods))
            self._preemptions.start(members[key].pod, pods, node)
        kept = {one.pod: one.node for one in plan.pipelined if members[one.pod].group == group}
        for pod, node in kept.items():
            self._keep(members[pod], node)
        leave = {one.key: one.pod.metadata.uid for found in victims.values() for one in found}
        self._promises[group] = _Promise(leave, kept)
        log.info("evicting pods for group", extra={"group": group, "victims": [*leave]})

    def _keep(self, member: Member, node: str) -> None:
        """Nominate a node for a pod; one with a gate has to be ungated first."""
        if member.gate is Gate.NONE:
            self._context.snapshot.nominate(member.pod, node)
            self._context.statuses.patch_status(member.pod, None, node)
