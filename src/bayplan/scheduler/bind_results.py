"""The results of binds: each is either observed, when the pod comes back with its node, or undone.

A bound pod that does not come back through the watch in time is looked up, and so is one for which
the result of the bind is unknown. Until then it counts on the node it was bound to. A pod that the
server does not find stays in the queue until the watch shows that it is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from bayplan.client.errors import ClientError
from bayplan.fit import Assumption
from bayplan.kube.pods import Pod
from bayplan.scheduler import messages
from bayplan.scheduler.binding import BindJob, Bound, Elsewhere, Failed, Gone, Result, Unknown
from bayplan.scheduler.context import SchedulerContext

log = logging.getLogger(__name__)
Read = Callable[[Pod], Awaitable[Pod | None]]
"""Asks the server for a pod; None if it is gone."""
SEEN_WITHIN = 60.0
"""Seconds after which a bound pod that has not come back through the watch is looked up; a request
that the server has not carried out by then it has dropped.
"""


class BindResults:
    """Handles the results of binds."""

    def __init__(self, context: SchedulerContext, read: Read, *, is_observed: bool = True) -> None:
        self._context = context
        self._read = read
        self._comes_back = is_observed

    def ended(self, job: BindJob, result: Result) -> None:
        """Handle the result of a bind."""
        match result:
            case Bound():
                self._bound(job)
            case Unknown(problem):
                log.warning("pod %s may be bound: %s", job.pod.key, problem)
                self._await(job.assumption)
            case Gone():
                self._context.forget(job.pod, job.assumption)
                self._context.queue.failed(job.entry, self._context.clock.monotonic())
                self._context.wakeup.set()
            case Elsewhere(pod):
                self._see(pod)
                self._context.forget(job.pod, job.assumption)
            case Failed(problem):
                self._context.forget(job.pod, job.assumption)
                self._context.fail(job.entry, problem, job.began)

    def _bound(self, job: BindJob) -> None:
        context, name = self._context, job.pod.spec.scheduler_name
        now = context.clock.monotonic()
        self._await(job.assumption)
        context.recorders.metrics.attempt(name, "scheduled", now - job.began)
        context.recorders.metrics.bound(job.entry.attempts, now - job.entry.added)
        context.note(name, job.pod, messages.scheduled(job.pod, job.node))
        if log.isEnabledFor(logging.DEBUG):
            log.debug("bound", extra={"pod": job.pod.key, "node": job.node})

    def _await(self, assumption: Assumption) -> None:
        """Set the deadline by which the watch must report a bound pod."""
        if self._comes_back:
            deadline = self._context.clock.monotonic() + SEEN_WITHIN
            self._context.snapshot.finish_binding(assumption, deadline)

    def _see(self, pod: Pod) -> None:
        """Observe a pod that is bound, before its watch event arrives."""
        self._context.snapshot.observe(pod)
        self._context.leave(pod.metadata.uid)

    async def look_after(self) -> None:
        """Look up bound pods that do not come back, until cancelled."""
        while True:
            await self._context.clock.sleep(SEEN_WITHIN / 4)
            for assumption in self._context.snapshot.overdue(self._context.clock.monotonic()):
                await self._look_up(assumption)

    async def _look_up(self, assumption: Assumption) -> None:
        context, uid = self._context, assumption.uid
        entry = context.queue.get(uid)
        pod = entry.pod if entry is not None else context.snapshot.get(Pod, assumption.pod_key)
        try:
            found = await self._read(pod) if pod is not None else None
        except ClientError as error:
            # It is still overdue when we look again.
            log.info("pod %s is bound and was not seen: %s", assumption.pod_key, error)
            return
        if found is not None and found.spec.node_name:
            self._see(found)
        if pod is not None:
            context.forget(pod, assumption)
        if (waiting := context.queue.get(uid)) is not None:
            context.queue.failed(waiting, context.clock.monotonic())
            context.wakeup.set()
