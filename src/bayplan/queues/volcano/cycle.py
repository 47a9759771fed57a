"""A cycle as Volcano has it: quota, gate and node pod by pod.

A pod that quota takes loses its gate at once, whatever becomes of its gang, and is placed in a
later cycle. Without nodes nothing is looked at. A pod of a task that fits nowhere stops the other
pods of that task. Pods that request nothing keep their gates. A refused group stops no other,
whatever the `dequeueStrategy`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

from bayplan.fit.state.workloads import DisruptionBudgets
from bayplan.queues.actions import ACTIONS, IN_ORDER, Action, Actions
from bayplan.queues.actions.eviction import EvictionPlanner, preempt, reclaim
from bayplan.queues.actions.groups_by_queue import GroupsByQueue
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.members import Gate, Member, TaskStatus
from bayplan.queues.orders import member_key
from bayplan.queues.placement import Placement
from bayplan.queues.problems import WaitCode
from bayplan.queues.session import PodAssignment, Session, Statement
from bayplan.queues.volcano.ledger import VolcanoAccounts, VolcanoLedger


class VolcanoSession(Session):
    """A cycle in which sums are frozen at its beginning, and evictions leave traces."""

    removable_gates = frozenset((Gate.OURS,))
    preemptor_gates = frozenset((Gate.NONE,))

    def __init__(
        self, ledger: Ledger, placement: Placement, budgets: DisruptionBudgets | None = None
    ) -> None:
        super().__init__(ledger, placement, budgets)
        self.begin()

    def begin(self) -> None:
        """Let what is requested, promised and elastic stand as it is for the cycle."""
        if isinstance(self.ledger, VolcanoLedger):
            self.ledger.freeze()

    def status_if_spared(self, victim: Member) -> TaskStatus:
        """Count a pod as running that was to be evicted, though it is only bound."""
        del victim
        return TaskStatus.RUNNING

    def keeps_quota(self, victim: Member) -> bool:
        """Let an evicted pod that asks for gates reserve what it had: evicting frees no quota."""
        return victim.opted_in

    def may_preempt_within(self, group: Group) -> bool:
        """Let pods leave for others of their group, though it cannot start."""
        del group
        return True

    def may_reclaim(self, member: Member) -> bool:
        """Evict though a queue above has no quota: victims die, the reclaimer cannot start."""
        del member
        return True


class VolcanoEvictionPlanner(EvictionPlanner):
    """Evicts without looking for a node that is free before."""

    def fits_already(self, statement: Statement, member: Member) -> bool:
        """Look for no free node."""
        del statement, member
        return False

    def candidates(self, member: Member) -> Iterator[tuple[str, list[Member]]]:
        """Return the nodes that a pod would fit without their victims; a node may need none."""
        return self.nodes_with_victims(member)


def enqueue(session: Session) -> None:
    """Admit groups, queue by queue in turns; those without minResources into any queue."""
    by_queue = GroupsByQueue(session, (group for group in session.groups() if group.is_pending))
    while (group := by_queue.next()) is not None:
        has_needs = group.min_resources is not None
        refusal = session.ledger.may_enqueue(group) if has_needs else None
        if refusal is not None:
            session.wait(group, refusal)
        else:
            session.ledger.admit(group)
            session.plan.admitted.append(group.key)


def allocate(session: Session) -> None:
    """Place pods, queue by queue in turns."""
    waiting = {group.key: pods for group, pods in _waiting(session)}
    by_queue = GroupsByQueue(session, (session.ledger.groups[key] for key in waiting))
    turns = PodByPod(session)
    while (queue := by_queue.queues.first()) is not None:
        group = None if _is_overused(session, queue) else by_queue.pop(queue)
        if group is None:
            by_queue.queues.discard(queue)
        elif turns.give(group, waiting[group.key]) and waiting[group.key]:
            by_queue.push(group)


def _is_overused(session: Session, queue: str) -> bool:
    accounts = session.accounts
    return isinstance(accounts, VolcanoAccounts) and accounts.is_overused(queue)


def _waiting(session: Session) -> Iterator[tuple[Group, list[Member]]]:
    """Return the groups that can be placed with their pending pods, in reverse order."""
    may_go = {Gate.NONE, *session.removable_gates}
    for group in session.groups():
        if group.is_pending or not group.count(TaskStatus.PENDING):
            continue
        if (reason := group.invalid) is not None:
            session.wait(group, reason)
            continue
        pending = group.of_status(TaskStatus.PENDING)
        pods = [one for one in pending if one.gate in may_go and not one.is_best_effort]
        if pods:
            yield group, sorted(pods, key=member_key, reverse=True)
        elif not group.is_ready:
            session.wait(group, WaitCode.FOREIGN_GATE)


class PodByPod:
    """Gives groups their turns."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._fits: dict[str, GangFit] = {}

    def give(self, group: Group, pods: list[Member]) -> bool:
        """Give a group its turn; returns whether it placed something and may have another."""
        if not self._session.placement.has_nodes():
            return False
        fit = self._fits.setdefault(group.key, GangFit(group))
        statement = Statement(self._session)
        while pods:
            member = pods.pop()
            if not self._is_let_through(member) or not fit.is_worth_trying(member):
                continue
            choice = self._session.placement.choose(member)
            if choice is not None:
                statement.take(member, choice)
                if group.is_ready:
                    break
            elif not fit.failed(member):
                break
        return statement.end(group)

    def _is_let_through(self, member: Member) -> bool:
        """Whether a pod can be placed in this cycle; its gate goes if quota lets it through."""
        if self._session.ledger.may_allocate(member) is not None:
            return False
        if member.opted_in and not member.reserved:
            self._session.ledger.reserve(member)
        self._session.ungate(member)
        return member.gate is Gate.NONE


class GangFit:
    """Pods of one group that fitted nowhere, and whether the rest is worth trying."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._failed: set[str] = set()
        """The tasks of pods that fitted nowhere."""

    def is_worth_trying(self, member: Member) -> bool:
        """Whether a pod is tried although others of its task did not fit."""
        return not member.role or member.role not in self._failed

    def failed(self, member: Member) -> bool:
        """Note that a pod fits nowhere; whether the gang can still be completed."""
        self._failed.add(member.role)
        group = self._group
        if group.min_member >= len(group.members):
            return False
        if not group.counts_roles:
            left = sum(one.role not in self._failed for one in group.of_status(TaskStatus.PENDING))
            return group.ready_count + left >= group.min_member
        placed = group.role_counts()
        return all(placed[role] >= group.min_of_role.get(role, 0) for role in self._failed)


def backfill(session: Session) -> None:
    """Place pods that request nothing, queue by queue, whether or not these are open."""
    by_queue = GroupsByQueue(session, _admitted(session))
    while (queue := by_queue.queues.first()) is not None:
        while (group := by_queue.pop(queue)) is not None:
            _fill(session, group)
        by_queue.queues.discard(queue)


def _admitted(session: Session) -> Iterator[Group]:
    for group in session.groups():
        if not group.is_pending and group.count(TaskStatus.PENDING) and group.invalid is None:
            yield group


def _fill(session: Session, group: Group) -> None:
    pending = group.of_status(TaskStatus.PENDING)
    light = [one for one in pending if one.is_best_effort and one.gate is Gate.NONE]
    for member in sorted(light, key=member_key):
        choice = session.placement.choose(member)
        if choice is not None and choice.now:
            session.placement.place(member, choice.node)
            member.node = choice.node
            session.ledger.move(member, TaskStatus.ALLOCATED)
            _bind_complete(session, group)
        else:
            session.plan.unplaced.append(member.key)


def _bind_complete(session: Session, group: Group) -> None:
    if not group.is_ready:
        return
    for member in list(group.of_status(TaskStatus.ALLOCATED)):
        session.ledger.move(member, TaskStatus.BINDING)
        session.plan.placed.append(PodAssignment(member.key, member.node))


VOLCANO_ACTIONS: Actions = {
    **ACTIONS,
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": partial(preempt, planner_type=VolcanoEvictionPlanner),
    "reclaim": partial(reclaim, planner_type=VolcanoEvictionPlanner),
}


def act(session: Session, actions: Iterable[Action] = IN_ORDER) -> None:
    """Take some of Volcano's actions, one after the other."""
    for name in actions:
        VOLCANO_ACTIONS[name](session)
