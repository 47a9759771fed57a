"""Queues in the scheduler: the pods that use them wait here for their turn.

`SchedulingQueue` holds these pods back when they could be tried (`is_held`), and the loop asks for
a turn (`turn`) beside each pod that it pops. Decisions go where all decisions go: binds to the
binder, conditions to the status patcher, and gates to `GateRemoval`.

Where the cluster does not serve Queues and PodGroups no pod is held. A pod that has our gate all
the same loses it: there is no quota that it could wait for.
"""

from __future__ import annotations

import asyncio

from bayplan.client import Change
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.gates import QUEUE_ALLOCATION_GATE
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.volcano import PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues import NOTHING, Gate, Ledger, Problem, gate_of
from bayplan.queues.observed_queues import ObservedQueues
from bayplan.queues.podgroups import uses_queues
from bayplan.queues.resources import node_amounts
from bayplan.scheduler.batch.actuation import Actuators
from bayplan.scheduler.batch.evictions import Evictions
from bayplan.scheduler.batch.gate_removal import GateRemoval, Ungated
from bayplan.scheduler.batch.pod_conditions import PodConditions
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.batch.status import QueueStatusWriter
from bayplan.scheduler.batch.turn_loop import TurnLoop
from bayplan.scheduler.config import QueueSettings
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.messages import Notice, cut
from bayplan.scheduler.queue import QueuedPod
from bayplan.scheduler.writes import Writes


class BatchScheduler:
    """The pods that use queues, and their queues."""

    def __init__(
        self,
        context: SchedulerContext,
        cycle: SchedulingCycle,
        writes: Writes,
        settings: QueueSettings,
    ) -> None:
        gates = context.snapshot.profile.gates.enabled(QUEUE_ALLOCATION_GATE)
        self._context = context
        self.ledger = Ledger(policy=settings.policy, priority_of=self._priority_of)
        self._observed = ObservedQueues(self.ledger, self._is_ours)
        self.gate_removal = GateRemoval(writes, context.clock, self._ungated)
        conditions = PodConditions(context, gates=gates)
        reservations = Reservations(settings.reservation_timeout)
        evictions = Evictions(context, self.ledger, cycle.preemptions)
        actuators = Actuators(cycle, self.gate_removal, conditions, evictions)
        self.turns = TurnLoop(context, self._observed, actuators, reservations, gates=gates)
        self.status_writer = QueueStatusWriter(
            context, self._observed, writes, conditions.reason_of
        )
        self._shared = NOTHING
        """What all nodes have together, where that is shared by weight."""
        self._problems: tuple[Problem, ...] = ()
        self._served: bool | None = None
        """Whether the cluster has queues; None as long as that is not known."""

    def is_held(self, entry: QueuedPod) -> bool:
        """Whether a pod that could be tried waits for a turn of its queue."""
        return self._served is not False and uses_queues(entry.pod)

    def turn(self) -> bool:
        """Give the next group its turn; returns whether there was one."""
        if self._served is not True:
            return False
        self._report_problems()
        return self.turns.give_next()

    def _report_problems(self) -> None:
        """Record events about invalid queues, once each."""
        problems = self.ledger.tree.problems
        if problems is self._problems:
            return
        for name in dict.fromkeys(one.queue for one in problems if one not in self._problems):
            queue = self.ledger.tree.nodes[name].queue
            text = "; ".join(one.text for one in problems if one.queue == name)
            notice = Notice("Warning", "InvalidQueue", "Scheduling", cut(text))
            if queue.metadata.uid:
                self._context.note(self._context.first_name, queue, notice)
        self._problems = problems

    async def run(self) -> None:
        """Carry out what is decided, until cancelled."""
        await asyncio.gather(self.gate_removal.run(), self.status_writer.run())

    def next_due(self) -> float | None:
        """Return when there may be a turn without an event; None if never."""
        return self.turns.next_due()

    # -- what happens ----------------------------------------------------------------------------

    def on_event(self, event: ClusterEvent) -> None:
        """Handle a change in the cluster."""
        if event.kind is PriorityClass:
            self._observed.observe_priorities()
        if event.kind is Node and self.ledger.policy.shares_nodes:
            self._update_shared(event)
        if event.kind is not Pod:
            return
        before, after = event.before, event.after
        if isinstance(before, Pod) and (after is None or _is_other(before, after)):
            self.gate_removal.drop(before.metadata.uid)
            self._observed.remove_pod(before)
        if isinstance(after, Pod):
            self._observe(after)
        if self._observed.changed_groups:
            self._context.wakeup.set()

    def _update_shared(self, event: ClusterEvent) -> None:
        """Update what is shared by weight after a node has changed."""
        for node, sign in ((event.before, -1), (event.after, 1)):
            if isinstance(node, Node):
                amounts = node_amounts(node)
                self._shared = self._shared + amounts if sign > 0 else self._shared - amounts
        self.ledger.set_shared(self._shared)

    def _observe(self, pod: Pod) -> None:
        self._observed.observe_pod(pod)
        member = self._observed.member(pod)
        is_held = member is not None and member.reserved
        if not pod.spec.scheduling_gates or (self._served and not is_held):
            self.gate_removal.drop(pod.metadata.uid)
        if self._served is False and self._is_ours(pod):
            self._ungate_unserved(pod)

    def on_node_lost(self, pod: Pod) -> None:
        """Keep the quota of a pod that has lost its node before it was bound."""
        self.turns.reservation_manager.on_node_lost(pod)

    def on_queue_change(self, change: Change[Queue]) -> None:
        """Handle a change of a queue."""
        if change.type == "deleted":
            self.ledger.delete_queue(change.object.name)
        else:
            self.ledger.put_queue(change.object)
        self._context.wakeup.set()

    def on_group_change(self, change: Change[PodGroup]) -> None:
        """Handle a change of a PodGroup."""
        if change.type == "deleted":
            self._observed.remove_group(change.object)
        else:
            self._observed.observe_group(change.object)
        self._context.wakeup.set()

    def on_kinds_served(self) -> None:
        """Begin to give turns: all queues and groups have been observed."""
        self._served = True
        self.turns.reservation_manager.recover()
        self._context.queue.update_held()
        self._context.wakeup.set()

    def on_kinds_missing(self) -> None:
        """Ungate all pods: the cluster serves no queues, or not yet."""
        if self._served is False:
            return
        self._served = False
        for member in self.ledger.members.values():
            self._ungate_unserved(member.pod)
        self._context.queue.update_held()
        self._context.wakeup.set()

    # -- inside ----------------------------------------------------------------------------------

    def _ungate_unserved(self, pod: Pod) -> None:
        if gate_of(pod) in {Gate.OURS, Gate.OURS_UNASKED} and not pod.is_terminating:
            self.gate_removal.start(pod)

    def _ungated(self, _pod: Pod, result: Ungated) -> None:
        self._context.recorders.metrics.ungated(result.value)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._context.profiles

    def _priority_of(self, name: str) -> int:
        return self._context.snapshot.class_priority(name)


def _is_other(before: Pod, after: object) -> bool:
    return isinstance(after, Pod) and after.metadata.uid != before.metadata.uid
