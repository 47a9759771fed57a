"""What comes of a turn: quota is held for pods, gates go, nodes are tried, and it is reported.

Who has a place is bound. Who has none is Unschedulable; if it asked for the gate, its quota stays
held until its time is over, else it is given back at once. A gang is placed whole, or not at all;
which of its pods go is decided by `bayplan.queues.gangs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bayplan.queues import Gate, Group, Member, NoRoom, Status
from bayplan.queues.asks import Asking
from bayplan.queues.gangs import Trial, select_by_quota, with_first
from bayplan.queues.registry import QueueRegistry, reserved_of
from bayplan.queues.session import Session
from bayplan.scheduler.attempt import Refused
from bayplan.scheduler.batch.evictions import Evictions
from bayplan.scheduler.batch.gate_removal import GateRemoval
from bayplan.scheduler.batch.placement import LivePlacement
from bayplan.scheduler.batch.pod_conditions import PodConditions
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.queue import QueuedPod


@dataclass(frozen=True, slots=True)
class Hands:
    """Whoever carries out what a turn comes to."""

    tries: SchedulingCycle
    ungating: GateRemoval
    telling: PodConditions
    evictions: Evictions


class TurnActuator:
    """Admits pods that quota has room for."""

    def __init__(
        self,
        context: SchedulerContext,
        book: QueueRegistry,
        hands: Hands,
        reservations: Reservations,
        *,
        gates: bool,
    ) -> None:
        self._context = context
        self._book = book
        self._hands = hands
        self._gates = gates
        """Whether quota stays held for pods that asked for the gate, and have no node yet."""
        self._reservations = reservations

    def let_in(self, group: Group, asked: Asking, chosen: Sequence[Member], now: float) -> None:
        """Hold quota for the chosen pods of a group, and remove their gates, or try them."""
        if not gated_of(chosen):
            self._try(group, asked, chosen, now)
            return
        if asked.spare:
            chosen = self._that_fit(group, asked, chosen)
        self._hold(chosen)
        for member in gated_of(chosen):
            self._hands.ungating.start(member.pod)
        self._reservations.begin(group.key, now)

    def _that_fit(self, group: Group, asked: Asking, chosen: Sequence[Member]) -> Sequence[Member]:
        """The pods that lose their gates: those that nodes take, and as many more as it needs."""
        order = with_first(chosen, asked.pods)
        with self._context.snapshot.fork():
            trial = self._trial(group, LivePlacement(self._context))
            complete = trial.run(order)
            trial.statement.discard()
        if complete:
            return trial.taken
        return self._selected(group, trial.taken, order, chosen)

    def _selected(
        self,
        group: Group,
        fitting: Sequence[Member],
        pods: Sequence[Member],
        chosen: Sequence[Member],
    ) -> Sequence[Member]:
        """The pods that wait for nodes, those that fit first; at worst those chosen before."""
        room_for = self._book.ledger.room_for(group)
        found = select_by_quota(group, with_first(fitting, pods), room_for)
        return chosen if isinstance(found, NoRoom) else found

    def _trial(self, group: Group, placement: LivePlacement) -> Trial:
        ledger = self._book.ledger
        return Trial(Session(ledger, placement), group, ledger.may_allocate)

    def _hold(self, members: Iterable[Member]) -> None:
        for member in members:
            if not member.reserved:
                self._book.ledger.reserve(member)

    # -- nodes ---------------------------------------------------------------------------------

    def _try(self, group: Group, asked: Asking, chosen: Sequence[Member], now: float) -> None:
        able = (one for one in with_first(chosen, asked.pods) if one.gate is Gate.NONE)
        pods = [one for one in able if one.pod.metadata.uid in self._context.queue]
        placement = LivePlacement(self._context, alone=not asked.is_gang)
        attempt = _Attempt(group, asked, tuple(chosen), placement, now)
        with self._context.snapshot.fork():
            placed = self._placed(attempt, pods)
            if placed:
                self._context.snapshot.commit()
        self._context.told.metrics.decided(self._context.clock.monotonic() - now)
        if placed:
            self._place(attempt, placed)
        else:
            self._refuse(attempt, pods)

    def _placed(self, attempt: _Attempt, pods: Sequence[Member]) -> list[Member]:
        """The pods that have found their places, all that are needed; none, and nothing done, if
        that is not so.
        """
        trial = self._trial(attempt.group, attempt.placement)
        try:
            complete = trial.run(pods) if attempt.asked.is_gang else trial.one(*pods)
        except BaseException:
            trial.statement.discard()
            raise
        if complete:
            trial.statement.commit()
            return trial.taken
        attempt.fitting, attempt.unfit = tuple(trial.taken), frozenset(trial.unfit)
        trial.statement.discard()
        return []

    def _entry(self, member: Member, now: float) -> QueuedPod:
        """A pod that was tried, as one that is being decided."""
        queue, uid = self._context.queue, member.pod.metadata.uid
        queue.activate(uid)
        return queue.take(queue[uid], now)

    def _place(self, attempt: _Attempt, placed: Sequence[Member]) -> None:
        group, placement = attempt.group, attempt.placement
        self._context.alike.clear()
        for member in placed:
            entry = self._entry(member, attempt.began)
            found, token = placement.found[member.key], placement.assumptions[member.key]
            self._hands.tries.start(entry, found, token, attempt.began)
        if not reserved_of(group):
            self._reservations.end(group.key)
        self._hands.evictions.forget(group.key)
        self._book.stir(group.key)

    def _refuse(self, attempt: _Attempt, pods: Sequence[Member]) -> None:
        group, began = attempt.group, attempt.began
        waiting = attempt.chosen
        if attempt.asked.spare:
            waiting = tuple(self._selected(group, attempt.fitting, pods, waiting))
        rests = self._reservations.rests(group.key, began)
        silent = rests or self._reservations.is_over(group.key)
        self._report(attempt, pods, () if silent else waiting)
        self._hands.evictions.make_room(group, began, in_other_queues=True)
        if self._keeps(group) and not rests:
            self._hold(waiting)
            self._reservations.begin(group.key, began)
        else:
            self.release(group)
        self._book.stir(group.key)

    def _report(self, attempt: _Attempt, pods: Iterable[Member], told: Sequence[Member]) -> None:
        """Have pods wait for what may help them, and tell some of them why."""
        telling, tell = self._hands.telling, set(told)
        rest = Refused(attempt.refusers, "")
        for member in pods:
            unfit = member in attempt.unfit
            refused = attempt.placement.refusal_of(member) if unfit else rest
            entry = self._entry(member, attempt.began)
            self._hands.tries.count_refusal(entry, refused, attempt.began)
            if member in tell and unfit:
                telling.refused(entry.pod, refused.message)
            elif member in tell:
                telling.would_fit(entry.pod, attempt.group.key)

    def _keeps(self, group: Group) -> bool:
        return self._gates and any(one.opted_in for one in group.of_status(Status.PENDING))

    def release(self, group: Group) -> list[Member]:
        """Give back the quota of pods that have no node."""
        released = reserved_of(group)
        for member in released:
            self._book.release(member)
        return released


@dataclass(slots=True)
class _Attempt:
    """One try of some pods of a group on nodes."""

    group: Group
    asked: Asking
    chosen: tuple[Member, ...]
    placement: LivePlacement
    began: float
    fitting: tuple[Member, ...] = ()
    """Those that would have had a place."""
    unfit: frozenset[Member] = frozenset()
    """Those that no node takes."""

    @property
    def refusers(self) -> frozenset[str]:
        """The plugins that refused some of them."""
        refused = map(self.placement.refusal_of, self.unfit)
        return frozenset(plugin for one in refused for plugin in one.plugins)


def gated_of(members: Iterable[Member]) -> list[Member]:
    """Those that have a gate."""
    return [one for one in members if one.gate is not Gate.NONE]
