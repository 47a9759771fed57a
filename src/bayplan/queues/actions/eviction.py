"""Evictions for groups that cannot start: preempt in their own queue, reclaim from others.

- *Preempt*: for a group, pods of groups of lower priority in its own queue are evicted. Within a
  group, too, pods may be evicted for those of higher priority.
- *Reclaim*: for a queue that has less than it deserves, pods of queues that have more are evicted.

`victims` has which pods may be evicted. Before any is, a node is looked for that has free capacity.
Nodes are tried by name, and not all of many; victims are chosen one by one, and only until the pod
fits. Where disruption budgets count, the pods that they protect are the last to be chosen, there or
on another node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from functools import partial
from itertools import islice

from bayplan.queues.actions.groups_by_queue import GroupsByQueue
from bayplan.queues.actions.victims import has_lesser_pods, preemptable, reclaimable
from bayplan.queues.groups import Group
from bayplan.queues.members import Member, TaskStatus
from bayplan.queues.orders import member_key
from bayplan.queues.placement import Choice
from bayplan.queues.session import Evicting, Session, Statement

MOST_TRIED = 100
"""Nodes with victims on them that are looked at for one pod."""
VictimsOn = Callable[[Member, str], list[Member] | None]
"""The pods that may be evicted from a node, in their order; None if it is not to be used."""
FitsOn = Callable[[Member, str], bool]
HasVictims = Callable[[Member], bool]
"""Whether any pod may be evicted for one; if not, no node has to be looked at."""


def starving(session: Session) -> list[Group]:
    """Return the admitted groups that have too few pods with a node, and overtake no other."""
    return [
        group
        for group in session.groups()
        if not group.is_pending
        and group.invalid is None
        and group.is_starving
        and not session.is_held_up(group)
    ]


def in_need(session: Session, group: Group) -> list[Member]:
    """Return a group's pods that wait for capacity and for no foreign gate, the last first."""
    pending = group.of_status(TaskStatus.PENDING)
    able = (one for one in pending if one.gate in session.preemptor_gates)
    return sorted(able, key=member_key, reverse=True)


class _FailedGroups:
    """Groups for which no victims were found: equivalent groups are skipped until something was
    decided.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: set[Hashable] = set()

    def attempt(self, group: Group, plan: Callable[[Session, Group], bool]) -> None:
        """Choose victims for a group, unless that failed for an equivalent one."""
        signature = self._equivalence_class(group)
        if signature in self._failed:
            return
        if plan(self._session, group):
            self._failed.clear()
        else:
            self._failed.add(signature)

    def _equivalence_class(self, group: Group) -> Hashable:
        """Return the equivalence class of a group: equivalent groups get the same victims."""
        pods = in_need(self._session, group)
        equivalence_class = self._session.placement.equivalence_class
        alike = tuple((equivalence_class(one), one.priority, one.never_preempts) for one in pods)
        needed = group.min_member - group.placed_count
        return group.queue, group.priority, needed, frozenset(group.min_of_role.items()), alike


class EvictionPlanner:
    """Chooses victims for pods in one way: by preempting, or by reclaiming."""

    def __init__(
        self,
        session: Session,
        action: Evicting,
        victims_on: VictimsOn,
        fits_on: FitsOn,
        has_victims: HasVictims = lambda _: True,
    ) -> None:
        self._session = session
        self._action = action
        self._victims_on = victims_on
        self._fits_on = fits_on
        self._has_victims = has_victims

    def plan(self, statement: Statement, member: Member) -> bool:
        """Find a node for a pod, and evict the pods that have to leave it; whether there is one."""
        if member.never_preempts:
            return False
        if self.fits_already(statement, member):
            return True
        protected: list[tuple[str, list[Member]]] = []
        for node, victims in islice(self.candidates(member), MOST_TRIED):
            kept, others = self._session.by_budget(victims)
            if self._clear(statement, member, node, others):
                return True
            if kept:
                protected.append((node, others + kept))
        return any(self._clear(statement, member, *one) for one in protected)

    def _clear(
        self, statement: Statement, member: Member, node: str, victims: list[Member]
    ) -> bool:
        """Evict pods from a node until a pod fits; whether it does."""
        trial = Statement(self._session)
        if not self._try(trial, member, node, victims):
            trial.discard()
            return False
        statement.merge(trial)
        return True

    def candidates(self, member: Member) -> Iterator[tuple[str, list[Member]]]:
        """Yield the nodes on which a pod would fit without its victims, with these."""
        if self._has_victims(member):
            for node, victims in self.nodes_with_victims(member):
                if victims:
                    yield node, victims

    def nodes_with_victims(self, member: Member) -> Iterator[tuple[str, list[Member]]]:
        """Yield the nodes on which a pod would fit without these pods, none or some."""
        for node in self._session.placement.helpful(member):
            victims = self._victims_on(member, node)
            if victims is not None and self._session.placement.fits_without(member, node, victims):
                yield node, victims

    def _try(self, trial: Statement, member: Member, node: str, victims: list[Member]) -> bool:
        for victim in victims:
            if self._fits_on(member, node):
                break
            trial.evict(victim, member, self._action)
        if not self._fits_on(member, node):
            return False
        trial.take(member, Choice(node, now=False))
        return True

    def fits_already(self, statement: Statement, member: Member) -> bool:
        """Take a node on which a pod fits, now or later, without evictions."""
        if self._session.ledger.may_allocate(member) is not None:
            return False
        choice = self._session.placement.choose(member)
        if choice is None:
            return False
        statement.take(member, choice)
        return True


def decide_evictions(session: Session) -> None:
    """Choose victims for all groups that cannot start: first in their own queues, then in others.

    The result is in the session's plan: the evictions, and the nodes that are kept for pods.
    """
    preempt(session)
    reclaim(session)


def preempt(session: Session, planner_type: type[EvictionPlanner] = EvictionPlanner) -> None:
    """Evict pods of groups of lower priority for groups of the same queue."""
    by_queue, failed_groups = GroupsByQueue(session, starving(session)), _FailedGroups(session)
    while (queue := by_queue.queues.first()) is not None:
        groups = []
        while (group := by_queue.pop(queue)) is not None:
            groups.append(group)
            failed_groups.attempt(group, partial(preempt_for, planner_type=planner_type))
        for group in groups:
            _within(session, group, planner_type)
        by_queue.queues.discard(queue)


def preempt_for(
    session: Session, group: Group, planner_type: type[EvictionPlanner] = EvictionPlanner
) -> bool:
    """Preempt in its queue for one group; whether it can start once the victims have left.

    The result is in the session's plan: the evictions, and the nodes that are kept for pods.
    """
    statement, pods = Statement(session), in_need(session, group)
    planner = _preemption_planner(session, planner_type, own=False)
    while group.is_starving and pods:
        planner.plan(statement, pods.pop())
    statement.end(group)
    return group.is_pipelined


def _within(session: Session, group: Group, planner_type: type[EvictionPlanner]) -> None:
    planner = _preemption_planner(session, planner_type, own=True)
    for member in reversed(in_need(session, group)):
        statement = Statement(session)
        if not planner.plan(statement, member) or not session.may_preempt_within(group):
            statement.discard()
            return
        statement.commit(bind=group.is_ready)


def _preemption_planner(
    session: Session, planner_type: type[EvictionPlanner], *, own: bool
) -> EvictionPlanner:
    victims_on = partial(preemptable, session, own=own)
    fits_on = partial(_can_preempt_on, session)
    has_victims = partial(has_lesser_pods, session, own=own)
    return planner_type(session, "preempt", victims_on, fits_on, has_victims)


def _can_preempt_on(session: Session, member: Member, node: str) -> bool:
    if session.ledger.may_allocate(member) is not None:
        return False
    return session.placement.fits_without(member, node)


def reclaim(session: Session, planner_type: type[EvictionPlanner] = EvictionPlanner) -> None:
    """Evict pods of queues that have more than they deserve, for queues that have less."""
    by_queue, failed_groups = GroupsByQueue(session, starving(session)), _FailedGroups(session)
    while (queue := by_queue.queues.first()) is not None:
        while (group := by_queue.pop(queue)) is not None:
            failed_groups.attempt(group, partial(reclaim_for, planner_type=planner_type))
        by_queue.queues.discard(queue)


def reclaim_for(
    session: Session, group: Group, planner_type: type[EvictionPlanner] = EvictionPlanner
) -> bool:
    """Reclaim from other queues for one group; whether it can start once the victims have left.

    The result is in the session's plan: the evictions, and the nodes that are kept for pods.
    """
    statement, pods = Statement(session), in_need(session, group)
    planner = planner_type(
        session, "reclaim", partial(reclaimable, session), partial(_can_reclaim_on, session)
    )
    while group.is_starving and pods:
        member = pods.pop()
        if _may_reclaim(session, member, group.queue):
            planner.plan(statement, member)
    statement.end(group)
    return group.is_pipelined


def _may_reclaim(session: Session, member: Member, queue: str) -> bool:
    """Whether a queue would, with a pod, still have no more than it deserves."""
    accounts, request = session.accounts, member.request
    if not accounts.tree.is_open(queue):
        return False
    used = accounts.usage(queue).allocated + request
    return accounts.policy.may_reclaim(accounts.quota(queue), used, request)


def _can_reclaim_on(session: Session, member: Member, node: str) -> bool:
    """Whether a pod will fit on a node, and into the quota of its queue and of those above it."""
    return session.placement.fits_without(member, node) and session.may_reclaim(member)
