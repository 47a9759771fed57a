"""Queues in the scheduler: the pods that use them wait here for their turn.

`SchedulingQueue` holds these pods back when they could be tried (`holds`), and the loop asks for a
turn (`turn`) beside each pod that it pops. All that is decided goes where other decisions go: binds
to the binder, conditions to the statuses, and gates to the hands that remove them.

Where the cluster does not serve Queues and PodGroups nothing is held. A pod that has our gate all
the same loses it: there is no quota that it could wait for.
"""

from __future__ import annotations

import asyncio

from bayplan.client import Change
from bayplan.fit.events import Event
from bayplan.kube.gates import QUEUE_ALLOCATION_GATE
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.queueing import PodGroup, Queue
from bayplan.kube.workloads import PriorityClass
from bayplan.queues import NOTHING, Gate, Ledger, Problem, gate_of
from bayplan.queues.podgroups import uses_queues
from bayplan.queues.registry import QueueRegistry
from bayplan.queues.resources import node_amounts
from bayplan.scheduler.batch.actuation import Hands
from bayplan.scheduler.batch.evictions import Evictions
from bayplan.scheduler.batch.gate_removal import GateRemoval, Ungated
from bayplan.scheduler.batch.pod_conditions import PodConditions
from bayplan.scheduler.batch.reservations import Reservations
from bayplan.scheduler.batch.status import QueueStatusWriter
from bayplan.scheduler.batch.turns import Turns
from bayplan.scheduler.config import QueueSettings
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.cycle import SchedulingCycle
from bayplan.scheduler.messages import Notice, cut
from bayplan.scheduler.queue import QueuedPod
from bayplan.scheduler.writes import Writes


class Batch:
    """The pods that use queues, and their queues."""

    def __init__(
        self,
        context: SchedulerContext,
        tries: SchedulingCycle,
        writes: Writes,
        settings: QueueSettings,
    ) -> None:
        gates = context.snapshot.profile.gates.enabled(QUEUE_ALLOCATION_GATE)
        self._context = context
        self.ledger = Ledger(policy=settings.policy, priority_of=self._priority_of)
        self._book = QueueRegistry(self.ledger, self._is_ours)
        self.ungating = GateRemoval(writes, context.clock, self._ungated)
        telling = PodConditions(context, gates=gates)
        reservations = Reservations(settings.reservation_timeout)
        evictions = Evictions(context, self.ledger, tries.preemptions)
        hands = Hands(tries, self.ungating, telling, evictions)
        self.turns = Turns(context, self._book, hands, reservations, gates=gates)
        self.standing = QueueStatusWriter(context, self._book, writes, telling.waits_for)
        self._shared = NOTHING
        """What all nodes have together, where that is shared by weight."""
        self._problems: tuple[Problem, ...] = ()
        self._served: bool | None = None
        """Whether the cluster has queues; None as long as that is not known."""

    def holds(self, entry: QueuedPod) -> bool:
        """Whether a pod that could be tried waits for a turn of its queue."""
        return self._served is not False and uses_queues(entry.pod)

    def turn(self) -> bool:
        """Give the next group its turn; says whether there was one."""
        if self._served is not True:
            return False
        self._tell_queues()
        return self.turns.one()

    def _tell_queues(self) -> None:
        """Tell the owners of queues what is wrong with them, once each."""
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
        await asyncio.gather(self.ungating.run(), self.standing.run())

    def next_due(self) -> float | None:
        """When there may be a turn without anybody telling us; None if never."""
        return self.turns.next_due()

    # -- what happens ----------------------------------------------------------------------------

    def heed(self, event: Event) -> None:
        """Something in the cluster changed."""
        if event.kind is PriorityClass:
            self._book.see_priorities()
        if event.kind is Node and self.ledger.policy.shares_nodes:
            self._share(event)
        if event.kind is not Pod:
            return
        before, after = event.before, event.after
        if isinstance(before, Pod) and (after is None or _is_other(before, after)):
            self.ungating.drop(before.metadata.uid)
            self._book.lose_pod(before)
        if isinstance(after, Pod):
            self._see(after)
        if self._book.stirred:
            self._context.news.set()

    def _share(self, event: Event) -> None:
        """Nodes have come, changed or gone: share what they have by weight."""
        for node, sign in ((event.before, -1), (event.after, 1)):
            if isinstance(node, Node):
                amounts = node_amounts(node)
                self._shared = self._shared + amounts if sign > 0 else self._shared - amounts
        self.ledger.set_shared(self._shared)

    def _see(self, pod: Pod) -> None:
        self._book.see_pod(pod)
        member = self._book.member(pod)
        is_held = member is not None and member.reserved
        if not pod.spec.scheduling_gates or (self._served and not is_held):
            self.ungating.drop(pod.metadata.uid)
        if self._served is False and self._is_ours(pod):
            self._ungate_without(pod)

    def forgotten(self, pod: Pod) -> None:
        """A pod has not got the node that it was to have."""
        self.turns.holding.forgotten(pod)

    def heed_queue(self, change: Change[Queue]) -> None:
        """A queue came, changed or went."""
        if change.type == "deleted":
            self.ledger.delete_queue(change.object.name)
        else:
            self.ledger.put_queue(change.object)
        self._context.news.set()

    def heed_group(self, change: Change[PodGroup]) -> None:
        """A group came, changed or went."""
        if change.type == "deleted":
            self._book.lose_group(change.object)
        else:
            self._book.see_group(change.object)
        self._context.news.set()

    def with_kinds(self) -> None:
        """All queues and groups that there are have been told: begin to give turns."""
        self._served = True
        self.turns.holding.recover()
        self._context.queue.hold_anew()
        self._context.news.set()

    def without_kinds(self) -> None:
        """The cluster has no queues, or not yet."""
        if self._served is False:
            return
        self._served = False
        for member in self.ledger.members.values():
            self._ungate_without(member.pod)
        self._context.queue.hold_anew()
        self._context.news.set()

    # -- inside ----------------------------------------------------------------------------------

    def _ungate_without(self, pod: Pod) -> None:
        if gate_of(pod) in {Gate.OURS, Gate.OURS_UNASKED} and not pod.is_terminating:
            self.ungating.start(pod)

    def _ungated(self, _pod: Pod, result: Ungated) -> None:
        self._context.told.metrics.ungated(result.value)

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._context.profiles

    def _priority_of(self, name: str) -> int:
        return self._context.snapshot.class_priority(name)


def _is_other(before: Pod, after: object) -> bool:
    return isinstance(after, Pod) and after.metadata.uid != before.metadata.uid
