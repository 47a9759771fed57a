"""The pods of a group by where they stand, and what they sum up to, kept as they change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from bayplan.queues.members import Gate, Member, Status
from bayplan.queues.resources import NOTHING, Resources

WAITING = (Status.PENDING, Status.PIPELINED)


class Roster:
    """Pods, counted."""

    def __init__(self) -> None:
        self.members: dict[str, Member] = {}
        self._by_status: dict[Status, dict[str, Member]] = {}
        self.roles: Counter[tuple[Status, str]] = Counter()
        """By status and role how many pods there are."""
        self.reserved_roles: Counter[str] = Counter()
        """By role the waiting pods that hold a part of the quota."""
        self.light_roles: Counter[str] = Counter()
        """By role the waiting pods that request nothing."""
        self.allocated = NOTHING
        self.pending = NOTHING
        self.pipelined = NOTHING
        self.reserved = NOTHING
        self.foreign = NOTHING
        """What pods request that others' gates hold back."""

    def add(self, member: Member) -> None:
        """Count a pod."""
        self.members[member.key] = member
        self._by_status.setdefault(member.status, {})[member.key] = member
        self._count(member, 1)

    def remove(self, member: Member) -> None:
        """Count a pod no longer."""
        del self.members[member.key]
        del self._by_status[member.status][member.key]
        self._count(member, -1)

    def move(self, member: Member, status: Status, *, reserved: bool = False) -> None:
        """Count a pod where it stands now."""
        del self._by_status[member.status][member.key]
        self._count(member, -1)
        member.status, member.reserved = status, reserved
        self._by_status.setdefault(status, {})[member.key] = member
        self._count(member, 1)

    def _count(self, member: Member, sign: int) -> None:
        status, request = member.status, member.request
        self.roles[status, member.role] += sign
        if status.is_allocated:
            self.allocated = _changed(self.allocated, request, sign)
        elif status is Status.PENDING:
            self.pending = _changed(self.pending, request, sign)
            if member.is_best_effort:
                self.light_roles[member.role] += sign
        elif status is Status.PIPELINED:
            self.pipelined = _changed(self.pipelined, request, sign)
        if member.reserved:
            self.reserved = _changed(self.reserved, request, sign)
            if status is Status.PENDING:
                self.reserved_roles[member.role] += sign
        if member.gate is Gate.FOREIGN:
            self.foreign = _changed(self.foreign, request, sign)

    def of_status(self, *statuses: Status) -> Iterator[Member]:
        """The pods that stand there."""
        for status in statuses:
            yield from self._by_status.get(status, {}).values()

    def count(self, *statuses: Status) -> int:
        """How many pods stand there."""
        return sum(len(self._by_status.get(status, ())) for status in statuses)

    @property
    def allocated_count(self) -> int:
        """How many pods have a node."""
        return sum(len(pods) for s, pods in self._by_status.items() if s.is_allocated)

    @property
    def ready_count(self) -> int:
        """How many pods have a node, or had one and are done."""
        return sum(len(pods) for s, pods in self._by_status.items() if s.is_ready)

    @property
    def placed_count(self) -> int:
        """How many pods have a node, are to have one, or had one and are done."""
        return self.ready_count + self.count(Status.PIPELINED)

    def alive_roles(self) -> Counter[str]:
        """By task the pods that have a node, had one, or may yet have one."""
        alive: Counter[str] = Counter()
        for (status, role), number in self.roles.items():
            if status.is_ready or status in WAITING:
                alive[role] += number
        return alive


def _changed(total: Resources, request: Resources, sign: int) -> Resources:
    return total + request if sign > 0 else total - request
