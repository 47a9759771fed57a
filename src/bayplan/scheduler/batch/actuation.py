"""Carries out a scheduling turn: reserve quota for pods, remove gates, try nodes.

Pods that fit are bound. Pods that do not are Unschedulable; if they asked for the gate, their quota
stays reserved until it times out, else it is released at once. A gang is placed whole, or not at
all; which of its pods are placed is decided by `bayplan.queues.gangs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bayplan.queues import Gate, Group, Member, TaskStatus
from bayplan.queues.gangs import pods_without_nodes, try_nodes, with_first
from bayplan.queues.observed_queues import ObservedQueues, reserved_of
from bayplan.queues.requests import GroupRequest
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
class Actuators:
    """The parts that carry out a turn."""

    cycle: SchedulingCycle
    gate_removal: GateRemoval
    conditions: PodConditions
    evictions: Evictions


class TurnActuator:
    """Carries out turns: reserves quota, removes gates, places pods."""

    def __init__(
        self,
        context: SchedulerContext,
        observed: ObservedQueues,
        actuators: Actuators,
        reservations: Reservations,
        *,
        gates: bool,
    ) -> None:
        self._context = context
        self._observed = observed
        self._actuators = actuators
        self._gates = gates
        """Whether quota stays reserved for pods that asked for the gate, and have no node yet."""
        self._reservations = reservations

    def admit(
        self, group: Group, requested: GroupRequest, chosen: Sequence[Member], now: float
    ) -> None:
        """Reserve quota for the chosen pods of a group, and remove their gates, or place them."""
        if not gated_pods(chosen):
            self._try(group, requested, chosen, now)
            return
        if requested.spare:
            chosen = self._fitting(group, requested, chosen)
        self._hold(chosen)
        for member in gated_pods(chosen):
            self._actuators.gate_removal.start(member.pod)
        self._reservations.begin(group.key, now)

    def _fitting(
        self, group: Group, requested: GroupRequest, chosen: Sequence[Member]
    ) -> Sequence[Member]:
        """Return the pods that lose their gates: those that fit, and as many more as it needs."""
        with self._context.snapshot.fork():
            session = Session(self._observed.ledger, LivePlacement(self._context))
            trial = try_nodes(
                session, group, with_first(chosen, requested.pods), is_gang=requested.is_gang
            )
            trial.statement.discard()
        if trial.is_complete:
            return trial.taken
        return pods_without_nodes(self._observed.ledger, group, requested, chosen, trial.taken)

    def _hold(self, members: Iterable[Member]) -> None:
        for member in members:
            if not member.reserved:
                self._observed.ledger.reserve(member)

    # -- nodes ---------------------------------------------------------------------------------

    def _try(
        self, group: Group, requested: GroupRequest, chosen: Sequence[Member], now: float
    ) -> None:
        able = (one for one in with_first(chosen, requested.pods) if one.gate is Gate.NONE)
        pods = [one for one in able if one.pod.metadata.uid in self._context.queue]
        placement = LivePlacement(self._context, alone=not requested.is_gang)
        attempt = _Attempt(group, requested, tuple(chosen), placement, now)
        with self._context.snapshot.fork():
            placed = self._placed(attempt, pods)
            if placed:
                self._context.snapshot.commit()
        self._context.recorders.metrics.decided(self._context.clock.monotonic() - now)
        if placed:
            self._place(attempt, placed)
        else:
            self._refuse(attempt, pods)

    def _placed(self, attempt: _Attempt, pods: Sequence[Member]) -> list[Member]:
        """Return the pods that were placed, all that are needed; none, and nothing is changed, if
        not all fit.
        """
        session = Session(self._observed.ledger, attempt.placement)
        trial = try_nodes(session, attempt.group, pods, is_gang=attempt.requested.is_gang)
        if trial.is_complete:
            trial.statement.commit()
            return trial.taken
        attempt.fitting, attempt.unfit = tuple(trial.taken), frozenset(trial.unfit)
        trial.statement.discard()
        return []

    def _entry(self, member: Member, now: float) -> QueuedPod:
        """Return the queue entry of a pod that was tried, as in flight."""
        queue, uid = self._context.queue, member.pod.metadata.uid
        queue.activate(uid)
        return queue.take(queue[uid], now)

    def _place(self, attempt: _Attempt, placed: Sequence[Member]) -> None:
        group, placement = attempt.group, attempt.placement
        self._context.known_refusals.clear()
        for member in placed:
            entry = self._entry(member, attempt.began)
            found, token = placement.found[member.key], placement.assumptions[member.key]
            self._actuators.cycle.start(entry, found, token, attempt.began)
        if not reserved_of(group):
            self._reservations.end(group.key)
        self._actuators.evictions.forget(group.key)
        self._observed.mark_changed(group.key)

    def _refuse(self, attempt: _Attempt, pods: Sequence[Member]) -> None:
        group, began = attempt.group, attempt.began
        waiting = pods_without_nodes(
            self._observed.ledger, group, attempt.requested, attempt.chosen, attempt.fitting
        )
        is_resting = self._reservations.is_resting(group.key, began)
        silent = is_resting or self._reservations.is_over(group.key)
        self._report(attempt, pods, () if silent else waiting)
        self._actuators.evictions.refused(group.key, began)
        if self._keeps(group) and not is_resting:
            self._hold(waiting)
            self._reservations.begin(group.key, began)
        else:
            self.release(group)
        self._observed.mark_changed(group.key)

    def _report(self, attempt: _Attempt, pods: Iterable[Member], shown: Sequence[Member]) -> None:
        """Return pods to the scheduling queue, and write the conditions of some of them."""
        conditions, tell = self._actuators.conditions, set(shown)
        rest = Refused(attempt.refusers, "")
        for member in pods:
            unfit = member in attempt.unfit
            refused = attempt.placement.refusal_of(member) if unfit else rest
            entry = self._entry(member, attempt.began)
            self._actuators.cycle.count_refusal(entry, refused, attempt.began)
            if member in tell and unfit:
                conditions.refused(entry.pod, refused.message)
            elif member in tell:
                conditions.set_fits(entry.pod, attempt.group.key)

    def _keeps(self, group: Group) -> bool:
        return self._gates and any(one.opted_in for one in group.of_status(TaskStatus.PENDING))

    def release(self, group: Group) -> list[Member]:
        """Release the quota of pods that have no node."""
        released = reserved_of(group)
        for member in released:
            self._observed.release(member)
        return released


@dataclass(slots=True)
class _Attempt:
    """One attempt to place some pods of a group."""

    group: Group
    requested: GroupRequest
    chosen: tuple[Member, ...]
    placement: LivePlacement
    began: float
    fitting: tuple[Member, ...] = ()
    """The pods that would have fitted."""
    unfit: frozenset[Member] = frozenset()
    """The pods that fit on no node."""

    @property
    def refusers(self) -> frozenset[str]:
        """The plugins that refused some of them."""
        refused = map(self.placement.refusal_of, self.unfit)
        return frozenset(plugin for one in refused for plugin in one.plugins)


def gated_pods(members: Iterable[Member]) -> list[Member]:
    """Return the pods that have a gate."""
    return [one for one in members if one.gate is not Gate.NONE]
