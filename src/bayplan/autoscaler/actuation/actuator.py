"""Removes nodes: taint, drain, check again, delete; the taint is removed if that fails.

All nodes of a loop are tainted before any pod is evicted, so that no pod is moved to a node that is
removed as well. Then each node is removed in the background; the loop goes on, and reads
`deletions`. Nodes of a zero-or-max group are removed all or none. With
--node-deletion-batcher-interval nodes of one group are deleted in one call.

If the provider refuses, nothing was deleted. If it does not answer, its instances are read: a node
whose instance is not being deleted is kept.

Nodes that a previous process did not finish are found by their taint (`node_taints`).
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
    NodeRemovalError,
)
from bayplan.autoscaler.actuation.node_taints import NodeWriter
from bayplan.autoscaler.cloudstate.reader import with_timeout
from bayplan.autoscaler.clusterstate.readiness import has_ready_conditions
from bayplan.autoscaler.clusterstate.taints import to_be_deleted
from bayplan.autoscaler.events import AutoscalerEvents, EventMessage
from bayplan.autoscaler.metrics import ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown.drain import DrainContext
from bayplan.autoscaler.scaledown.removable import (
    Cooldowns,
    CooldownTrigger,
    Deletions,
    RemovalBatch,
)
from bayplan.base.clock import Clock
from bayplan.client import Client
from bayplan.client.errors import ClientError
from bayplan.fit.snapshot import Snapshot
from bayplan.kube.events import EventType
from bayplan.nodegroups import (
    InstanceState,
    NodeGroupError,
    NodeGroupNotFoundError,
    NodeRef,
    Provider,
    ProviderUnavailableError,
)


class InstanceDeleter:
    """Deletes instances through the provider, in batches."""

    def __init__(self, provider: Provider, options: AutoscalerOptions, clock: Clock) -> None:
        self._provider = provider
        self._interval = options.node_deletion_batcher_interval
        self._clock = clock
        self._gathered: dict[str, list[NodeDeletion]] = {}

    async def gather(self, group: str, jobs: Sequence[NodeDeletion]) -> list[NodeDeletion]:
        """Return the nodes of a group to delete now; none if an earlier call will delete them."""
        if self._interval <= 0 or jobs[0].atomic:
            return list(jobs)
        first = group not in self._gathered
        self._gathered.setdefault(group, []).extend(jobs)
        if not first:
            return []
        await self._clock.sleep(self._interval)
        return self._gathered.pop(group)

    async def delete(self, group: str, jobs: Sequence[NodeDeletion]) -> None:
        """Delete nodes of a group, all or none; NodeGroupError if that fails."""
        nodes = [NodeRef.of(job.node) for job in jobs]
        try:
            await with_timeout(self._provider.delete_nodes(group, nodes))
        except ProviderUnavailableError as error:
            await self._check_deleting(group, nodes, str(error))
        except NodeGroupNotFoundError:
            # They are already deleted, if the provider has none of them.
            await self._check_deleting(group, nodes, "the cloud provider does not know the node")

    async def _check_deleting(self, group: str, nodes: Sequence[NodeRef], why: str) -> None:
        """Raise ProviderUnavailableError unless every node is being deleted, or is deleted."""
        try:
            there = await with_timeout(self._provider.instances(group))
        except NodeGroupError:
            raise ProviderUnavailableError(why) from None
        kept = {one.provider_id for one in there if one.state is not InstanceState.DELETING}
        if any(node.provider_id in kept for node in nodes):
            raise ProviderUnavailableError(why)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class ActuatorContext:
    """The clients, options and recorders of the actuator."""

    client: Client
    provider: Provider
    snapshot: Snapshot
    options: AutoscalerOptions
    recorder: AutoscalerEvents
    metrics: ScaleDownMetrics
    cooldowns: Cooldowns
    drain_context: Callable[[], DrainContext]
    """Returns the current input of the drain rules."""


class Actuator:
    """Removes nodes."""

    def __init__(self, context: ActuatorContext) -> None:
        client, options = context.client, context.options
        self._context = context
        self._tracker = NodeDeletionTracker()
        self._nodes = NodeWriter(client)
        evictor = Evictor(client, options, context.recorder, context.metrics)
        self._drainer = NodeDrainer(client, options, evictor, context.drain_context)
        self._deleter = InstanceDeleter(context.provider, options, client.clock)
        self._tasks: set[asyncio.Task[None]] = set()

    def deletions(self) -> Deletions:
        """The nodes that are being removed."""
        return self._tracker.deletions()

    async def start(self, batches: Sequence[RemovalBatch]) -> list[str]:
        """Taint the nodes of these batches, and remove them in the background; return their names.
        If one cannot be tainted, none is removed.
        """
        begun = [self._begin(batch) for batch in batches]
        every = [job for jobs in begun for job in jobs]
        if not every or not await self._taint(every):
            return []
        now = self._context.client.clock.now()
        for batch, jobs in zip(batches, begun, strict=True):
            self._context.cooldowns.record(CooldownTrigger.DELETE, batch.group, now)
            for part in [jobs] if batch.atomic else [[job] for job in jobs]:
                if part:
                    self._spawn(self._remove(part))
        return [job.name for job in every]

    async def close(self) -> None:
        """Stop; the next leader continues removals in progress."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def idle(self) -> None:
        """Wait until no removal is in progress."""
        while self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self, batch: RemovalBatch) -> list[NodeDeletion]:
        named = self._context.snapshot.cluster.node_named
        found = [(named(one.node), not one.is_empty) for one in batch.nodes]
        jobs = [
            NodeDeletion(node, batch.group, drains, batch.atomic)
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

    async def _taint(self, jobs: Sequence[NodeDeletion]) -> bool:
        """Taint nodes; if one cannot be tainted, the taint is removed from all."""
        answers = await asyncio.gather(*map(self._taint_one, jobs))
        if not any(answers):
            return True
        for job, problem in zip(jobs, answers, strict=True):
            if problem:
                text = f"failed to mark the node as toBeDeleted/unschedulable: {problem}"
                self._record_event(job, "Warning", "ScaleDownFailed", text)
            await self._untaint(job)
            self._end(job, failed=True)
        return False

    async def _taint_one(self, job: NodeDeletion) -> str:
        options, clock = self._context.options, self._context.client.clock
        cordon = options.cordon_node_before_terminating
        try:
            await self._nodes.taint_for_deletion(
                job.node, to_be_deleted(clock.now()), cordon=cordon
            )
        except ClientError as error:
            return str(error) or type(error).__name__
        text = "marked the node as toBeDeleted/unschedulable"
        self._record_event(job, "Normal", "ScaleDown", text)
        return ""

    async def _untaint(self, job: NodeDeletion) -> None:
        try:
            await self._nodes.remove_deletion_taint(job.node)
        except ClientError as error:
            log.warning("cannot remove the taint of node %s yet: %s", job.name, error)

    # -- one node, or several ------------------------------------------------------------------

    async def _remove(self, jobs: Sequence[NodeDeletion]) -> None:
        """Remove nodes, all or none; an unexpected error aborts."""
        try:
            await self._drain_and_delete(jobs)
        except Exception:
            log.exception("failed to remove nodes %s", ", ".join(job.name for job in jobs))
            await self._abort(jobs, ["unexpected error"] * len(jobs))

    async def _drain_and_delete(self, jobs: Sequence[NodeDeletion]) -> None:
        """Drain nodes and delete them; if one cannot be drained, none is deleted."""
        await self._context.client.clock.sleep(self._context.options.node_delete_delay_after_taint)
        problems = await asyncio.gather(*map(self._prepare, jobs))
        if any(problems):
            await self._abort(jobs, problems)
            return
        going = await self._deleter.gather(jobs[0].group, jobs)
        if going:
            await self._delete(going)

    async def _prepare(self, job: NodeDeletion) -> str:
        """Drain a node; return why it cannot be removed."""
        try:
            await self._drainer.prepare(job)
        except NodeRemovalError as error:
            return str(error) or "it cannot be removed"
        return ""

    async def _delete(self, jobs: Sequence[NodeDeletion]) -> None:
        """Check again, and delete; nodes that fail the check are kept."""
        problems = await asyncio.gather(*map(self._check_again, jobs))
        failed = [job for job, problem in zip(jobs, problems, strict=True) if problem]
        if failed and jobs[0].atomic:
            await self._abort(jobs, problems)
            return
        await self._abort(failed, [problem for problem in problems if problem])
        going = [job for job, problem in zip(jobs, problems, strict=True) if not problem]
        if not going:
            return
        try:
            await self._deleter.delete(going[0].group, going)
        except NodeGroupError as error:
            await self._abort(going, [f"the cloud provider failed: {error}"] * len(going))
            return
        for job in going:
            self._removed(job)

    async def _check_again(self, job: NodeDeletion) -> str:
        try:
            await self._drainer.check(job)
        except NodeRemovalError as error:
            return str(error) or "it cannot be removed"
        return ""

    async def _abort(self, jobs: Sequence[NodeDeletion], problems: Sequence[str]) -> None:
        """Abort the removal of nodes: record why, and remove their taints."""
        for job, problem in zip(jobs, problems, strict=True):
            why = problem or "couldn't scale down other nodes in this node group"
            what = "drain and delete node" if job.drains else "delete empty node"
            log.warning("node %s is not removed: %s", job.name, why)
            self._record_event(job, "Warning", "ScaleDownFailed", f"failed to {what}: {why}")
            await self._untaint(job)
            self._end(job, failed=True)

    def _removed(self, job: NodeDeletion) -> None:
        self._record_event(job, "Normal", "ScaleDown", "nodes removed by cluster autoscaler")
        reason, text = (
            ("ScaleDown", f"Scale-down: node {job.name} removed with drain")
            if job.drains
            else ("ScaleDownEmpty", f"Scale-down: empty node {job.name} removed")
        )
        self._context.recorder.about_all(EventMessage("Normal", reason, text, ACTION))
        ready = has_ready_conditions(job.node)
        why = "unready" if not ready else "underutilized" if job.drains else "empty"
        self._context.metrics.removed.labels(why).inc()
        self._end(job, failed=False)

    def _end(self, job: NodeDeletion, *, failed: bool) -> None:
        self._tracker.end(job)
        if failed:
            self._context.metrics.failed.inc()
            now = self._context.client.clock.now()
            self._context.cooldowns.record(CooldownTrigger.FAILURE, job.group, now)

    def _record_event(self, job: NodeDeletion, kind: EventType, reason: str, text: str) -> None:
        self._context.recorder.about(job.node, EventMessage(kind, reason, text, ACTION))
