"""Scheduling turns: whose it is, what the group requests, and what quota decides.

One engine for all who give turns:

- The scheduler gives them as things change, and removes gates and binds pods in the background.
- A cycle (`actions`) gives them over a still picture until no group can be served any more.
- `queue_snapshot` does so without nodes, to report what every group waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bayplan.queues.admission import Admitted, decide_turn, fits_when_empty
from bayplan.queues.groups import Group
from bayplan.queues.ledger import Ledger
from bayplan.queues.problems import QueueReason
from bayplan.queues.queue_order import QueueOrder
from bayplan.queues.requests import Candidates, GroupRequest, StageOf, requests_of

ProblemOf = Callable[[Group], QueueReason | None]
"""Why a group cannot request anything, whatever the quota; None if it can."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A group whose turn it is, and what it requests."""

    group: Group
    requested: GroupRequest
    beyond_share: bool = False
    """Whether it may have more than its queue deserves: no other group can be served."""


@dataclass(frozen=True, slots=True)
class RefusedTurn:
    """A turn in which quota has refused what was requested."""

    reason: QueueReason
    is_passing: bool
    """Whether the queue would have the quota if it were empty."""
    waiting: Mapping[str, QueueReason]
    """By group why it waits now, of those for which that is new."""


class SchedulingTurns:
    """Groups that request something, given their turns one after the other."""

    def __init__(
        self,
        ledger: Ledger,
        candidates: Candidates,
        stage_of: StageOf,
        problem_of: ProblemOf = lambda _: None,
    ) -> None:
        self.order = QueueOrder(ledger)
        self._ledger = ledger
        self._candidates = candidates
        self._stage_of = stage_of
        self._problem_of = problem_of

    def update(self, group: Group, now: float) -> QueueReason | None:
        """Enter what a group requests now; returns why it waits, if that is known already."""
        requested = self.requested(group)
        if isinstance(requested, tuple):
            return self.order.put(group, [one.quota for one in requested], now)
        self.order.remove(group.key)
        return requested

    def requested(self, group: Group) -> tuple[GroupRequest, ...] | QueueReason | None:
        """Return the alternative requests of a group, or why it has none; None if it needs none."""
        return self._problem_of(group) or requests_of(group, self._candidates, self._stage_of)

    def next(self, now: float, may_exceed: Callable[[], bool] = lambda: True) -> Turn | None:
        """Return the next turn.

        A group beyond the share of its queue is served only if no other can be, and it may.
        """
        while True:
            found, beyond = self.order.next(now), False
            if found is None and may_exceed():
                found, beyond = self.order.next_beyond_share(now), True
            if found is None:
                return None
            key, quota = found
            group = self._ledger.groups[key]
            requested = self.requested(group)
            requests = requested if isinstance(requested, tuple) else ()
            for one in requests:
                if one.quota == quota:
                    return Turn(group, one, beyond)
            self.update(group, now)

    def decide(self, turn: Turn, now: float) -> Admitted | RefusedTurn:
        """Decide a turn by quota. The group has to be entered again with what it requests next."""
        group, requested = turn.group, turn.requested
        decided = decide_turn(self._ledger, group, requested, beyond_share=turn.beyond_share)
        if isinstance(decided, Admitted):
            self.order.remove(group.key)
            return decided
        ever = fits_when_empty(self._ledger, group, requested)
        waiting = self.order.refuse((group.key, requested.quota), decided, now, ever=ever)
        return RefusedTurn(decided, ever, waiting)
