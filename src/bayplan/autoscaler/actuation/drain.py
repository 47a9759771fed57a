"""Drains a node: evicts every pod with its grace period, and waits until it is gone.

Between a plan and its execution pods are scheduled, budgets change and nodes disappear. So the
node's pods are read again after schedulers have seen its taint, checked by the drain rules, and
evicted; and once more before the deletion, when no pod may be left that would be lost.

An eviction that a budget refuses, or that fails, is retried for a while. DaemonSet pods are evicted
where configured, but not waited for. Pods are identified by uid: a new pod of the same name means
that the old one is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bayplan.autoscaler.events import AutoscalerEvents, EventMessage
from bayplan.autoscaler.metrics import ScaleDownMetrics
from bayplan.autoscaler.options import AutoscalerOptions, ScaleDownOptions
from bayplan.autoscaler.scaledown.drain import (
    DrainContext,
    grace_of,
    is_daemon,
    is_evicted_daemon,
    is_expendable,
    is_long_terminating,
    is_mirror,
)
from bayplan.autoscaler.scaledown.reasons import BlockingPod
from bayplan.autoscaler.scaledown.removable import Deletions
from bayplan.autoscaler.scaledown.simulator import PodMoves, pod_moves
from bayplan.client import Client
from bayplan.client.errors import ClientError, ConflictError, NotFoundError
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod


class NodeRemovalError(Exception):
    """A node cannot be removed after all."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeDeletion:
    """One node that is being removed."""

    node: Node
    group: str
    drains: bool
    """Whether pods are evicted first; if not, a newly scheduled pod blocks the removal."""
    atomic: bool = False
    """Whether all nodes of its group are removed, or none."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


class NodeDeletionTracker:
    """The removals in progress, by node."""

    def __init__(self) -> None:
        self._tracker: dict[str, NodeDeletion] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._tracker

    def begin(self, jobs: Iterable[NodeDeletion]) -> None:
        """Add removals."""
        self._tracker.update({job.name: job for job in jobs})

    def end(self, job: NodeDeletion) -> None:
        """Remove a finished or aborted removal."""
        self._tracker.pop(job.name, None)

    def deletions(self) -> Deletions:
        """The nodes that are being removed."""
        every = self._tracker.values()
        return Deletions(
            {job.name: job.group for job in every if not job.drains},
            {job.name: job.group for job in every if job.drains},
        )


async def pods_on(client: Client, node: str) -> list[Pod]:
    """List the pods of a node that have not finished."""
    page = await client.list(Pod, fields=f"spec.nodeName={node}")
    return [pod for pod in page.items if not pod.is_terminal]


def lost_pods(pods: list[Pod], client: Client, cutoff: int) -> list[Pod]:
    """Return the pods that would be lost: no DaemonSet, mirror, expendable or overdue pods."""
    now = client.clock.now()
    return [
        pod
        for pod in pods
        if not (
            is_daemon(pod)
            or is_mirror(pod)
            or is_expendable(pod, cutoff)
            or is_long_terminating(pod, now)
        )
    ]


log = logging.getLogger(__name__)
RETRY = 10.0
"""Seconds between attempts to evict a pod."""
HEADROOM = 30.0
"""Seconds that a pod may take beyond its grace period."""
POLL_INTERVAL = 5.0
"""Seconds between two lists of the remaining pods."""
ACTION = "ScaleDown"
DELETING = EventMessage("Normal", "ScaleDown", "deleting pod for node scale down", ACTION)
NOT_DELETED = EventMessage(
    "Warning", "ScaleDownFailed", "failed to delete pod for ScaleDown", ACTION
)


class DrainError(Exception):
    """A node could not be drained."""


class Evictor:
    """Evicts pods, and waits until they are gone."""

    def __init__(
        self,
        client: Client,
        options: ScaleDownOptions,
        recorder: AutoscalerEvents,
        metrics: ScaleDownMetrics,
    ) -> None:
        self._client = client
        self._options = options
        self._recorder = recorder
        self._metrics = metrics

    async def drain(self, node: str, pods: Sequence[Pod], daemons: Sequence[Pod]) -> None:
        """Evict the pods of a node; DrainError if that fails."""
        evictions = [self._evict(pod) for pod in pods]
        answers = await asyncio.gather(*evictions, *map(self._evict_once, daemons))
        refused = [why for why in answers if why]
        if refused:
            raise DrainError("; ".join(refused))
        if pods:
            await self._wait_until_gone(node, pods)

    async def _evict(self, pod: Pod) -> str:
        """Evict a pod, with retries; return why that failed."""
        self._recorder.about(pod, DELETING)
        clock = self._client.clock
        ends = clock.monotonic() + self._options.max_pod_eviction_time
        while True:
            why = await self._evict_once(pod)
            if not why:
                self._metrics.evicted.labels("succeeded").inc()
                return ""
            if clock.monotonic() >= ends:
                break
            await clock.sleep(RETRY)
        self._metrics.evicted.labels("failed").inc()
        self._recorder.about(pod, NOT_DELETED)
        return f"failed to evict pod {pod.key} within allowed timeout (last error: {why})"

    async def _evict_once(self, pod: Pod) -> str:
        grace = grace_of(pod)
        if self._options.max_graceful_termination_sec > 0:
            grace = min(grace, self._options.max_graceful_termination_sec)
        uid = pod.metadata.uid
        try:
            await self._client.evict(pod.namespace, pod.name, grace=grace, uid=uid)
        except NotFoundError:
            return ""
        except ConflictError as error:
            return "" if await self._is_another(pod) else str(error)
        except ClientError as error:
            return str(error)
        return ""

    async def _is_another(self, pod: Pod) -> bool:
        """Whether the pod is gone, or another pod has its name."""
        try:
            found = await self._client.get(Pod, pod.namespace, pod.name)
        except NotFoundError:
            return True
        except ClientError:
            return False
        return found.metadata.uid != pod.metadata.uid

    async def _wait_until_gone(self, node: str, pods: Sequence[Pod]) -> None:
        """Wait until none of the pods is on the node."""
        clock = self._client.clock
        ends = clock.monotonic() + self._options.max_graceful_termination_sec + HEADROOM
        waited_for = {pod.metadata.uid for pod in pods}
        while True:
            still = await self._remaining(node, waited_for)
            if not still:
                return
            if clock.monotonic() >= ends:
                raise DrainError(f"pods remaining after timeout: {', '.join(still)}")
            await clock.sleep(POLL_INTERVAL)

    async def _remaining(self, node: str, uids: set[str]) -> list[str]:
        try:
            pods = await pods_on(self._client, node)
        except ClientError as error:
            log.warning("cannot list the pods of node %s: %s", node, error)
            return ["unknown"]
        return [pod.key for pod in pods if pod.metadata.uid in uids]


DELAY = "delay-deletion.cluster-autoscaler.kubernetes.io/"
"""Prefix of a node's annotations that delay its deletion."""


class NodeDrainer:
    """Drains and checks nodes before their deletion."""

    def __init__(
        self,
        client: Client,
        options: AutoscalerOptions,
        evictor: Evictor,
        drain_context: Callable[[], DrainContext],
    ) -> None:
        self._client = client
        self._options = options
        self._evictor = evictor
        self._drain_context = drain_context

    async def prepare(self, job: NodeDeletion) -> None:
        """Drain a node; NodeRemovalError if it cannot be removed."""
        try:
            moves = await self._moves(job)
            if job.drains or not moves.moved:
                await self._evictor.drain(job.name, moves.moved, self._daemons(moves))
                await self._wait_for_delay(job)
                return
        except (ClientError, DrainError) as error:
            raise NodeRemovalError(str(error)) from error
        raise NodeRemovalError(f"new pods scheduled: {moves.moved[0].key}")

    async def check(self, job: NodeDeletion) -> None:
        """Check before the deletion; NodeRemovalError if pods would be lost."""
        try:
            left = await pods_on(self._client, job.name)
            found = await self._node(job)
        except ClientError as error:
            raise NodeRemovalError(str(error)) from error
        lost = lost_pods(left, self._client, self._options.expendable_pods_priority_cutoff)
        if lost:
            raise NodeRemovalError(f"new pods scheduled: {', '.join(pod.key for pod in lost)}")
        if found is not None and found.metadata.uid != job.node.metadata.uid:
            raise NodeRemovalError("the node was replaced by another of the same name")

    async def _moves(self, job: NodeDeletion) -> PodMoves:
        cutoff = self._options.expendable_pods_priority_cutoff
        there = await pods_on(self._client, job.name)
        pods = [pod for pod in there if not is_expendable(pod, cutoff)]
        found = pod_moves(pods, self._drain_context())
        if isinstance(found, BlockingPod):
            raise NodeRemovalError(f"blocked by pod {found.pod}: {found.reason.value}")
        if found.on_completion:
            raise NodeRemovalError(
                f"active on-completion pods present: {found.on_completion[0].key}"
            )
        return found

    def _daemons(self, moves: PodMoves) -> list[Pod]:
        options = self._options
        by_default = (
            options.daemonset_eviction_for_occupied_nodes
            if moves.moved
            else options.daemonset_eviction_for_empty_nodes
        )
        return [pod for pod in moves.daemons if is_evicted_daemon(pod, by_default)]

    async def _wait_for_delay(self, job: NodeDeletion) -> None:
        """Wait while delay-deletion annotations are set, up to the timeout."""
        clock = self._client.clock
        ends = clock.monotonic() + self._options.node_deletion_delay_timeout
        while clock.monotonic() < ends:
            node = await self._node(job)
            if node is None or not any(key.startswith(DELAY) for key in node.metadata.annotations):
                return
            await clock.sleep(POLL_INTERVAL)

    async def _node(self, job: NodeDeletion) -> Node | None:
        try:
            return await self._client.get(Node, job.name)
        except NotFoundError:
            return None
