"""Allocating as Volcano does: quota, gate and node pod by pod.

A pod that quota lets through loses its gate at once, whatever becomes of its gang, and is placed in
a later cycle. Without nodes nothing is looked at. A pod of a task that fits nowhere stops the other
pods of that task.
"""

from __future__ import annotations

from bayplan.queues.groups import Group
from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.session import Session, Statement


class PodByPod:
    """Volcano's way to give groups their turns."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._fits: dict[str, GangFit] = {}

    def turn(self, group: Group, pods: list[Member]) -> bool:
        """One turn of a group; whether it placed something and may have another."""
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
            left = sum(one.role not in self._failed for one in group.of_status(Status.PENDING))
            return group.ready_count + left >= group.min_member
        placed = group.role_counts()
        return all(placed[role] >= group.min_of_role.get(role, 0) for role in self._failed)
