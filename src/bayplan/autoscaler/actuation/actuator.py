"""Removing nodes for real: taint, drain, look once more, delete; and back again if it fails.

All nodes of a loop are tainted before any pod is evicted, so that no pod is moved to a node that
goes as well. Then each node is on its own, in the background, as long as it takes; the loop goes
on, and asks `deletions` which nodes are on their way. Nodes of a group that goes as a whole wait
for each other, and stay together if one must stay. Nodes of one group are deleted together where
that is asked for.

A cloud that refuses has not acted. One that does not answer may have: its instances then say
whether the node is going, and if they do not, it stays.

What was begun and not ended by a process that is no more is found by its taint (`node_taints`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from bayplan.autoscaler.actuation.drain import (
    ACTION,
    Evictor,
    NodeDeletion,
    NodeDeletionTracker,
    NodeDrainer,
    StaysError,
)
from bayplan.autoscaler.actuation.node_taints import NodeWriter
from bayplan.autoscaler.cloudstate.reader import with_timeout
from bayplan.autoscaler.clusterstate.readiness import says_ready
from bayplan.autoscaler.clusterstate.taints import to_be_deleted
from bayplan.autoscaler.events import AutoscalerEvents, EventMessage
from bayplan.autoscaler.metrics import ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown.drain import DrainContext
from bayplan.autoscaler.scaledown.release import Activity, Batch, Cooldowns, Deletions
from bayplan.base.clock import Clock
from bayplan.client import Client
from bayplan.client.errors import ClientError
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.events import EventType
from bayplan.nodegroups import (
    InstanceState,
    NodeGroupError,
    NodeRef,
    NotFoundError,
    Provider,
    UnavailableError,
)


class InstanceDeleter:
    """Deletes through a provider."""

    def __init__(self, provider: Provider, options: AutoscalerOptions, clock: Clock) -> None:
        self._provider = provider
        self._interval = options.node_deletion_batcher_interval
        self._clock = clock
        self._gathered: dict[str, list[NodeDeletion]] = {}

    async def gather(self, group: str, jobs: Sequence[NodeDeletion]) -> list[NodeDeletion]:
        """The nodes of a group that are to be deleted now; none if others will take them along."""
        if self._interval <= 0 or jobs[0].together:
            return list(jobs)
        first = group not in self._gathered
        self._gathered.setdefault(group, []).extend(jobs)
        if not first:
            return []
        await self._clock.sleep(self._interval)
        return self._gathered.pop(group)

    async def delete(self, group: str, jobs: Sequence[NodeDeletion]) -> None:
        """Give nodes of a group back, all or none; NodeGroupError if they stay."""
        nodes = [NodeRef.of(job.node) for job in jobs]
        try:
            await with_timeout(self._provider.delete_nodes(group, nodes))
        except UnavailableError as error:
            await self._unless_going(group, nodes, str(error))
        except NotFoundError:
            # They went by themselves, if the cloud has none of them.
            await self._unless_going(group, nodes, "the cloud does not know the node")

    async def _unless_going(self, group: str, nodes: Sequence[NodeRef], why: str) -> None:
        """UnavailableError unless every node is going, or gone."""
        try:
            there = await with_timeout(self._provider.instances(group))
        except NodeGroupError:
            raise UnavailableError(why) from None
        staying = {one.provider_id for one in there if one.state is not InstanceState.DELETING}
        if any(node.provider_id in staying for node in nodes):
            raise UnavailableError(why)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ActuatorContext:
    """What the actuator works with."""

    client: Client
    provider: Provider
    snapshot: Snapshot
    options: AutoscalerOptions
    recorder: AutoscalerEvents
    metrics: ScaleDownMetrics
    cooldowns: Cooldowns
    scene: Callable[[], DrainContext]
    """What drain rules look at now."""


class Actuator:
    """Gives nodes back."""

    def __init__(self, context: ActuatorContext) -> None:
        client, options = context.client, context.options
        self._context = context
        self._tracker = NodeDeletionTracker()
        self._nodes = NodeWriter(client)
        evictor = Evictor(client, options, context.recorder, context.metrics)
        self._drainer = NodeDrainer(client, options, evictor, context.scene)
        self._deleter = InstanceDeleter(context.provider, options, client.clock)
        self._tasks: set[asyncio.Task[None]] = set()

    def deletions(self) -> Deletions:
        """Which nodes are on their way out."""
        return self._tracker.deletions()

    async def start(self, batches: Sequence[Batch]) -> list[str]:
        """Taint the nodes of these batches, and give them back in the background; returns their
        names. If one cannot be tainted, none goes.
        """
        begun = [self._begin(batch) for batch in batches]
        every = [job for jobs in begun for job in jobs]
        if not every or not await self._mark(every):
            return []
        now = self._context.client.clock.now()
        for batch, jobs in zip(batches, begun, strict=True):
            self._context.cooldowns.note(Activity.DELETE, batch.group, now)
            for part in [jobs] if batch.together else [[job] for job in jobs]:
                if part:
                    self._spawn(self._go(part))
        return [job.name for job in every]

    async def close(self) -> None:
        """Stop; what is under way is left as it is, for whoever comes next."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, batch: Batch) -> list[NodeDeletion]:
        named = self._context.snapshot.cluster.node_named
        found = [(named(one.node), not one.is_empty) for one in batch.nodes]
        jobs = [
            NodeDeletion(node, batch.group, drains, batch.together)
            for node, drains in found
            if node is not None and node.name not in self._tracker
        ]
        self._tracker.begin(jobs)
        return jobs

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- tainting ------------------------------------------------------------------------------

    async def _mark(self, jobs: Sequence[NodeDeletion]) -> bool:
        """Taint nodes; if one cannot be, none stays tainted."""
        answers = await asyncio.gather(*map(self._mark_one, jobs))
        if not any(answers):
            return True
        for job, problem in zip(jobs, answers, strict=True):
            if problem:
                text = f"failed to mark the node as toBeDeleted/unschedulable: {problem}"
                self._tell(job, "Warning", "ScaleDownFailed", text)
            await self._unmark(job)
            self._end(job, failed=True)
        return False

    async def _mark_one(self, job: NodeDeletion) -> str:
        options, clock = self._context.options, self._context.client.clock
        cordon = options.cordon_node_before_terminating
        try:
            await self._nodes.mark(job.node, to_be_deleted(clock.now()), cordon=cordon)
        except ClientError as error:
            return str(error) or type(error).__name__
        text = "marked the node as toBeDeleted/unschedulable"
        self._tell(job, "Normal", "ScaleDown", text)
        return ""

    async def _unmark(self, job: NodeDeletion) -> None:
        try:
            await self._nodes.unmark(job.node)
        except ClientError as error:
            log.warning("node %s keeps its taint for now: %s", job.name, error)

    # -- one node, or several ------------------------------------------------------------------

    async def _go(self, jobs: Sequence[NodeDeletion]) -> None:
        """Give nodes back that go together; whatever happens, they do not go for ever."""
        try:
            await self._prepare_and_return(jobs)
        except Exception:
            log.exception("nodes %s cannot be given back", ", ".join(job.name for job in jobs))
            await self._stay(jobs, ["unexpected error"] * len(jobs))

    async def _prepare_and_return(self, jobs: Sequence[NodeDeletion]) -> None:
        """Prepare nodes and give them back; if one of them must stay, all do."""
        await self._context.client.clock.sleep(self._context.options.node_delete_delay_after_taint)
        problems = await asyncio.gather(*map(self._problem_with, jobs))
        if any(problems):
            await self._stay(jobs, problems)
            return
        going = await self._deleter.gather(jobs[0].group, jobs)
        if going:
            await self._return(going)

    async def _problem_with(self, job: NodeDeletion) -> str:
        """Prepare a node; returns why it must stay."""
        try:
            await self._drainer.prepare(job)
        except StaysError as error:
            return str(error) or "it must stay"
        return ""

    async def _return(self, jobs: Sequence[NodeDeletion]) -> None:
        """Look once more, and delete; those that must stay do, unless they go together."""
        problems = await asyncio.gather(*map(self._problem_at_last, jobs))
        staying = [job for job, problem in zip(jobs, problems, strict=True) if problem]
        if staying and jobs[0].together:
            await self._stay(jobs, problems)
            return
        await self._stay(staying, [problem for problem in problems if problem])
        going = [job for job, problem in zip(jobs, problems, strict=True) if not problem]
        if not going:
            return
        try:
            await self._deleter.delete(going[0].group, going)
        except NodeGroupError as error:
            await self._stay(going, [f"the cloud does not delete it: {error}"] * len(going))
            return
        for job in going:
            self._gone(job)

    async def _problem_at_last(self, job: NodeDeletion) -> str:
        try:
            await self._drainer.check(job)
        except StaysError as error:
            return str(error) or "it must stay"
        return ""

    async def _stay(self, jobs: Sequence[NodeDeletion], problems: Sequence[str]) -> None:
        """Give up on nodes: they are as they were, and say why."""
        for job, problem in zip(jobs, problems, strict=True):
            why = problem or "couldn't scale down other nodes in this node group"
            what = "drain and delete node" if job.drains else "delete empty node"
            log.warning("node %s stays: %s", job.name, why)
            self._tell(job, "Warning", "ScaleDownFailed", f"failed to {what}: {why}")
            await self._unmark(job)
            self._end(job, failed=True)

    def _gone(self, job: NodeDeletion) -> None:
        self._tell(job, "Normal", "ScaleDown", "nodes removed by cluster autoscaler")
        reason, text = (
            ("ScaleDown", f"Scale-down: node {job.name} removed with drain")
            if job.drains
            else ("ScaleDownEmpty", f"Scale-down: empty node {job.name} removed")
        )
        self._context.recorder.about_all(EventMessage("Normal", reason, text, ACTION))
        ready = says_ready(job.node)
        why = "unready" if not ready else "underutilized" if job.drains else "empty"
        self._context.metrics.removed.labels(why).inc()
        self._end(job, failed=False)

    def _end(self, job: NodeDeletion, *, failed: bool) -> None:
        self._tracker.end(job)
        if failed:
            self._context.metrics.failed.inc()
            now = self._context.client.clock.now()
            self._context.cooldowns.note(Activity.FAILURE, job.group, now)

    def _tell(self, job: NodeDeletion, kind: EventType, reason: str, text: str) -> None:
        self._context.recorder.about(job.node, EventMessage(kind, reason, text, ACTION))
