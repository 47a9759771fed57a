"""What Volcano remembers, while a gang is placed, of pods that fitted nowhere."""

from __future__ import annotations

from bayplan.queues.groups import Group
from bayplan.queues.members import Member, Status


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
