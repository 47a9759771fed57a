"""Scheduling turns in the live scheduler: one at a time, in the order of queues.

- *No quota*: the group waits, gates stay, and no node is added for it.
- *More than the queue deserves by weight*: it waits until no other group can be served, and those
  admitted before it have been tried.
- *Quota, and gates*: quota is reserved, and gates are removed in the background; the pods come back
  without them, to be tried.
- *Quota, no gates*: nodes are tried (`actuation`).
- *Quota, a bind that failed*: quota stays reserved, and the pod is tried again.

When no group can be served, evictions are decided (`evictions`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from bayplan.kube.pods import Pod
from bayplan.queues import Gate, Group, Ledger, Member, QueueReason, TaskStatus, WaitCode
from bayplan.queues.admission import Admitted
from bayplan.queues.observed_queues import ObservedQueues, reserved_of
from bayplan.queues.requests import Stage
from bayplan.queues.turns import RefusedTurn, SchedulingTurns, Turn
from bayplan.scheduler.batch.actuation import Actuators, TurnActuator, gated_pods
from bayplan.scheduler.batch.pod_conditions import has_timed_out
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.queue import SubQueue

log = logging.getLogger(__name__)
_RESTING = (SubQueue.UNSCHEDULABLE, SubQueue.BACKOFF)


class ReservationManager:
    """Keeps reservations: once for each pod, and not for ever."""

    def __init__(
        self,
        context: SchedulerContext,
        observed: ObservedQueues,
        actuators: Actuators,
        reservations: Reservations,
        actuator: TurnActuator,
    ) -> None:
        self._context = context
        self._observed = observed
        self._actuators = actuators
        self._reservations = reservations
        self._actuator = actuator

    @property
    def _ledger(self) -> Ledger:
        return self._observed.ledger

    def on_node_lost(self, pod: Pod) -> None:
        """Keep the quota of a pod that has lost its node before it was bound."""
        member = self._observed.member(pod)
        if member is not None and member.status.is_allocated and not member.pod.spec.node_name:
            member.node = ""
            self._ledger.move(member, TaskStatus.PENDING, reserved=True)
            self._reservations.begin(member.group, self._context.clock.monotonic())

    def recover(self) -> None:
        """Reserve quota again for pods that were admitted before the start, as far as it goes."""
        now = self._context.clock.monotonic()
        for group in self._observed.recover():
            self._reservations.begin(group, now)

    def settle(self) -> None:
        """Look again at pods whose queue has less quota, or that are in another queue now."""
        for member in self._observed.settle():
            self._actuators.gate_removal.drop(member.pod.metadata.uid)
            self._context.queue.activate(member.pod.metadata.uid)
            self._observed.mark_changed(member.group)

    def expire(self, now: float) -> None:
        """Release reservations that have timed out, and look again at groups that have rested."""
        for due in self._reservations.due(now):
            group = self._ledger.groups.get(due.group)
            if group is not None and due.is_over:
                self._time_out(group, now)
            elif group is not None:
                for member in group.of_status(TaskStatus.PENDING):
                    self._context.queue.activate(member.pod.metadata.uid)
                self._observed.mark_changed(group.key)

    def _time_out(self, group: Group, now: float) -> None:
        """Release a group's quota once its pods' conditions are written: until then a node may
        come.
        """
        waiting = reserved_of(group)
        for member in gated_pods(waiting):
            self._actuators.gate_removal.drop(member.pod.metadata.uid)
            self._observed.release(member)
        unreported = [
            one for one in waiting if one.gate is Gate.NONE and not has_timed_out(one.pod)
        ]
        if unreported:
            self._actuators.conditions.set_timed_out(unreported, group)
            self._reservations.check_again(group.key, now)
            return
        log.info("reservation timed out", extra={"group": group.key, "queue": group.queue})
        self._actuator.release(group)
        self._reservations.rest(group.key, now)
        self._observed.mark_changed(group.key)


class TurnLoop:
    """Gives groups their turns as things change."""

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
        self._reservations = reservations
        self._actuator = TurnActuator(context, observed, actuators, reservations, gates=gates)
        self.reservation_manager = ReservationManager(
            context, observed, actuators, reservations, self._actuator
        )
        self._turns = SchedulingTurns(
            observed.ledger, observed.candidates, self.stage_of, self._problem_of
        )
        self._ungating = _UngatingPods(observed.ledger)
        """The pods whose gates are being removed."""
        self._ungating_within_share = _UngatingPods(observed.ledger)

    @property
    def _ledger(self) -> Ledger:
        return self._observed.ledger

    # -- whose turn it is ------------------------------------------------------------------------

    def give_next(self) -> bool:
        """Give the next group its turn, or, if none can be served, decide evictions for those that
        cannot start; returns whether anything was done.
        """
        now, order = self._context.clock.monotonic(), self._turns.order
        if order.starvation.expire(now):
            order.reconsider_all()
        self.reservation_manager.settle()
        self.reservation_manager.expire(now)
        self._update_changed(now)
        turn = self._turns.next(now, may_exceed=self._ungating_within_share.is_empty)
        if turn is None:
            return self._make_room(now)
        try:
            self._serve(turn, now)
        except Exception:
            log.exception("group %s could not be served", turn.group.key)
            self._release_failed(turn.group, now)
        return True

    def next_due(self) -> float | None:
        """Return when there may be something to do without an event; None if never."""
        times = (
            self._reservations.next_due(),
            self._turns.order.starvation.next_due(),
            self._eviction_due(),
        )
        return min((time for time in times if time is not None), default=None)

    def _eviction_due(self) -> float | None:
        return self._actuators.evictions.due(is_ungating=not self._ungating.is_empty())

    def _make_room(self, now: float) -> bool:
        due, order = self._eviction_due(), self._turns.order
        if due is None or due > now:
            return False
        reasons = ((key, order.refusal(key)) for key in order)
        held_up = [
            (key, reason) for key, reason in reasons
            if reason is not None and reason.code is WaitCode.EARLIER_GROUP
        ]  # fmt: skip
        return self._actuators.evictions.look(now, held_up)

    def _update_changed(self, now: float) -> None:
        """Enter the groups that have changed."""
        for entry in self._context.queue.newly_held():
            member = self._observed.member(entry.pod)
            if member is not None:
                self._observed.candidates.put(member)
                self._actuators.conditions.add_pod(member)
                self._observed.mark_changed(member.group)
        changed_groups, self._observed.changed_groups = self._observed.changed_groups, {}
        for key in changed_groups:
            self._update(key, now)

    def _update(self, key: str, now: float) -> None:
        group = self._ledger.groups.get(key)
        if group is None:
            self._turns.order.remove(key)
            self._reservations.end(key)
            self._actuators.conditions.forget(key)
            self._actuators.evictions.forget(key)
        elif (reason := self._turns.update(group, now)) is not None:
            self._wait(group, reason)

    def _problem_of(self, group: Group) -> QueueReason | None:
        if not group.is_known:
            text = f"PodGroup {group.key} does not exist"
            return QueueReason(WaitCode.BAD_GROUP, group.queue, text)
        if (text := self._observed.malformed(group)) and group.count(TaskStatus.PENDING):
            return QueueReason(WaitCode.BAD_GROUP, group.queue, text)
        return None

    def stage_of(self, member: Member) -> Stage:
        """Return the stage of a pod without a node."""
        if member.gate is Gate.FOREIGN:
            return Stage.ELSEWHERE
        if member.gate is not Gate.NONE:
            return Stage.COMING if member.reserved else Stage.GATED
        entry = self._context.queue.get(member.pod.metadata.uid)
        if entry is None:
            return Stage.ELSEWHERE
        if entry.subqueue is SubQueue.HELD:
            return Stage.HELD
        return Stage.RESTING if entry.subqueue in _RESTING else Stage.COMING

    # -- a turn ----------------------------------------------------------------------------------

    def _serve(self, turn: Turn, now: float) -> None:
        group, requested = turn.group, turn.requested
        if self._reservations.is_resting(group.key, now) and gated_pods(requested.members):
            self._turns.order.remove(group.key)
            return
        decided = self._turns.decide(turn, now)
        if not isinstance(decided, Admitted):
            self._refuse(group, decided, now)
            return
        self._actuators.conditions.forget(group.key)
        if not decided.members:
            self._observed.mark_changed(group.key)
            return
        self._observed.mark_unreported(group.key)
        gated = [one.key for one in gated_pods(decided.members)]
        self._ungating.add(gated)
        if decided.within_share and self._ledger.policy.shares_nodes:
            self._ungating_within_share.add(gated)
        self._actuator.admit(group, requested, decided.members, now)

    def _refuse(self, group: Group, refused: RefusedTurn, now: float) -> None:
        for key, why in refused.waiting.items():
            if (shown := self._ledger.groups.get(key)) is not None:
                self._wait(shown, why)
        if refused.reason.code is WaitCode.QUOTA and refused.is_passing:
            self._actuators.evictions.refused(group.key, now)

    def _wait(self, group: Group, reason: QueueReason) -> None:
        if self._actuators.conditions.set_waiting(group, reason):
            self._observed.mark_unreported(group.key)

    def _release_failed(self, group: Group, now: float) -> None:
        """Back off a group whose turn failed with an error; the others go on."""
        self._turns.order.remove(group.key)
        self._actuator.release(group)
        for member in group.of_status(TaskStatus.PENDING):
            entry = self._context.queue.get(member.pod.metadata.uid)
            if entry is not None:
                self._context.queue.failed(entry, now)


class _UngatingPods:
    """Pods that reserve quota and still have their gates, which are being removed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._keys: dict[str, None] = {}

    def add(self, keys: Iterable[str]) -> None:
        """Note pods whose gates are being removed."""
        self._keys.update(dict.fromkeys(keys))

    def is_empty(self) -> bool:
        """Whether there are none any more."""
        while self._keys:
            key = next(iter(self._keys))
            member = self._ledger.members.get(key)
            if member is not None and member.reserved and member.gate is not Gate.NONE:
                return False
            del self._keys[key]
        return True
