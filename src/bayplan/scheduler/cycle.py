"""The scheduling cycle: a pod is placed, or refused.

Placed, it is assumed and handed to the binder. Refused, it waits in the queue; its condition, and
an event if that is new, have the reason; it may preempt others. As long as nothing has changed, a
pod of the same signature is refused for the same reason without another look.
"""

from __future__ import annotations

import logging

from bayplan.fit import Assumption
from bayplan.fit.plugins.registry import bind_timeout
from bayplan.kube.pods import Pod
from bayplan.scheduler import messages
from bayplan.scheduler.attempt import Outcome, Placed, Refused, attempt
from bayplan.scheduler.binding import Binder, BindJob
from bayplan.scheduler.context import SchedulerContext
from bayplan.scheduler.preemption import Preemptions
from bayplan.scheduler.queue import QueuedPod
from bayplan.scheduler.writes import Writes

log = logging.getLogger(__name__)


class SchedulingCycle:
    """Schedules pods, one after the other."""

    def __init__(self, context: SchedulerContext, binder: Binder, writes: Writes) -> None:
        self._context = context
        self._binder = binder
        self.preemptions = Preemptions(
            writes, context.clock, self._on_evicted, self._on_eviction_failed
        )

    def one(self, entry: QueuedPod) -> None:
        """Schedule a pod; an error with one must not stop the others."""
        began = self._context.clock.monotonic()
        try:
            self._decide(entry, began)
        except Exception:
            log.exception("scheduling pod %s failed", entry.pod.key)
            self._context.recorders.metrics.attempt(entry.pod.spec.scheduler_name, "error", 0.0)
            self._context.queue.failed(entry, began)

    def _decide(self, entry: QueuedPod, began: float) -> None:
        known_refusals = (
            self._context.known_refusals.get(entry.signature)
            if entry.signature is not None
            else None
        )
        outcome = self._attempt(entry) if known_refusals is None else known_refusals
        self._context.recorders.metrics.decided(self._context.clock.monotonic() - began)
        if isinstance(outcome, Placed):
            self.start(entry, outcome, self._assume(entry, outcome), began)
        else:
            self._refuse(entry, outcome, began)

    def _attempt(self, entry: QueuedPod) -> Outcome:
        context, pod = self._context, entry.pod
        busy = pod.metadata.uid in self.preemptions
        outcome = attempt(context.snapshot, pod, context.profile_of(pod), may_preempt=not busy)
        stands = isinstance(outcome, Refused) and outcome.preemption is None and not busy
        if isinstance(outcome, Refused) and stands and entry.signature is not None:
            context.known_refusals[entry.signature] = outcome
        return outcome

    def _assume(self, entry: QueuedPod, found: Placed) -> Assumption:
        assumption = self._context.snapshot.assume(entry.pod, found.decision)
        self._context.known_refusals.clear()
        return assumption

    def start(self, entry: QueuedPod, found: Placed, assumption: Assumption, began: float) -> None:
        """Have a pod bound where it is assumed to be."""
        context, pod = self._context, entry.pod
        context.queue.done(entry)
        timeout = bind_timeout(context.snapshot.profile.plugins_for(pod))
        self._binder.start(BindJob(entry, pod, found.node, assumption, timeout, began))

    def _refuse(self, entry: QueuedPod, outcome: Refused, began: float) -> None:
        self.count_refusal(entry, outcome, began)
        context, pod, name = self._context, entry.pod, entry.pod.spec.scheduler_name
        if outcome.preemption is not None:
            self._preempt(pod, outcome)
        elif outcome.nomination == "" and context.snapshot.nominated_node(pod):
            context.clear_nomination(pod)
        condition = messages.refused_condition(outcome.message, "Unschedulable", context.moment())
        if context.statuses.patch_status(pod, condition, outcome.nomination):
            context.note(name, pod, messages.failed(outcome.message))
            log.debug("pod unschedulable", extra={"pod": pod.key, "reason": outcome.message})

    def count_refusal(self, entry: QueuedPod, outcome: Refused, began: float) -> None:
        """Have a pod wait for what may help it."""
        context, name, now = (
            self._context,
            entry.pod.spec.scheduler_name,
            self._context.clock.monotonic(),
        )
        context.queue.refused(entry, outcome.plugins, now)
        context.recorders.metrics.attempt(name, "unschedulable", now - began)
        context.recorders.metrics.refused(name, outcome.plugins, outcome.drivers)

    def _preempt(self, pod: Pod, outcome: Refused) -> None:
        context, found = self._context, outcome.preemption
        if found is None or found.node is None:
            return
        context.recorders.metrics.preempted(len(found.victims))
        context.snapshot.nominate(pod, found.node)
        for other in found.lower_nominated:
            context.clear_nomination(other)
            context.statuses.patch_status(other, None, "")
        context.known_refusals.clear()
        victims = [victim.key for victim in found.victims]
        log.info("preempting pods", extra={"pod": pod.key, "node": found.node, "victims": victims})
        self.preemptions.start(pod, found.victims, found.node)

    def _on_evicted(self, preemptor: Pod, victim: Pod, node: str) -> None:
        name = preemptor.spec.scheduler_name
        self._context.note(name, victim, messages.preempted(preemptor, node))

    def _on_eviction_failed(self, preemptor: Pod) -> None:
        """Clear the nomination of a pod whose victims could not be evicted, and try it again."""
        self._context.clear_nomination(preemptor)
        self._context.statuses.patch_status(preemptor, None, "")
        self._context.queue.activate(preemptor.metadata.uid)
        self._context.wakeup.set()
