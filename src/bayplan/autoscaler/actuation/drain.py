"""Draining a node: every pod is evicted with its grace, and waited for until it is gone.

Between a plan and its execution pods come, budgets are spent and nodes vanish. So the node is read
afresh after its taint has been seen by schedulers: its pods are held against the drain rules again,
and evicted; and once more before it is deleted nothing may be on it that would be lost.

An eviction that a budget refuses, or that fails, is tried again for a while. Daemons are asked to
go as well where they should, but are not waited for. Pods are known by their uid: another one of
the same name is not touched, and means that the old one is gone.
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
from bayplan.autoscaler.scaledown.release import Deletions
from bayplan.autoscaler.scaledown.simulator import PodMoves, pod_moves
from bayplan.client import Client
from bayplan.client.errors import ClientError, ConflictError, NotFoundError
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod


class StaysError(Exception):
    """A node stays after all, and why."""


@dataclass(frozen=True, slots=True, eq=False)
class NodeDeletion:
    """One node that is being given back."""

    node: Node
    group: str
    drains: bool
    """Whether pods have to be moved first; without, a pod that has come keeps the node."""
    together: bool = False
    """Whether it goes with others of its group, or not at all."""

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name


class NodeDeletionTracker:
    """All that are under way, by node."""

    def __init__(self) -> None:
        self._tracker: dict[str, NodeDeletion] = {}

    def __contains__(self, node: object) -> bool:
        return node in self._tracker

    def begin(self, jobs: Iterable[NodeDeletion]) -> None:
        """They are under way."""
        self._tracker.update({job.name: job for job in jobs})

    def end(self, job: NodeDeletion) -> None:
        """It is over, one way or the other."""
        self._tracker.pop(job.name, None)

    def deletions(self) -> Deletions:
        """Which nodes are on their way out."""
        every = self._tracker.values()
        return Deletions(
            {job.name: job.group for job in every if not job.drains},
            {job.name: job.group for job in every if job.drains},
        )


async def pods_on(client: Client, node: str) -> list[Pod]:
    """The pods of a node that have not ended, read afresh."""
    page = await client.list(Pod, fields=f"spec.nodeName={node}")
    return [pod for pod in page.items if not pod.is_terminal]


def left_behind(pods: list[Pod], client: Client, cutoff: int) -> list[Pod]:
    """Those that a node must not be deleted with: not its own, not expendable, not long gone."""
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
"""Seconds between tries to evict a pod."""
HEADROOM = 30.0
"""Seconds that a pod may take beyond its grace."""
LOOK = 5.0
"""Seconds between looks at who is still there."""
ACTION = "ScaleDown"
DELETING = EventMessage("Normal", "ScaleDown", "deleting pod for node scale down", ACTION)
NOT_DELETED = EventMessage(
    "Warning", "ScaleDownFailed", "failed to delete pod for ScaleDown", ACTION
)


class DrainError(Exception):
    """A node could not be emptied."""


class Evictor:
    """Evicts through a client."""

    def __init__(
        self,
        client: Client,
        options: ScaleDownOptions,
        recorder: AutoscalerEvents,
        metrics: ScaleDownMetrics,
    ) -> None:
        self._client = client
        self._options = options
        self._teller = recorder
        self._metrics = metrics

    async def drain(self, node: str, pods: Sequence[Pod], daemons: Sequence[Pod]) -> None:
        """Empty a node; DrainError if that is not possible."""
        asked = [self._evict(pod) for pod in pods]
        answers = await asyncio.gather(*asked, *map(self._try_once, daemons))
        refused = [why for why in answers if why]
        if refused:
            raise DrainError("; ".join(refused))
        if pods:
            await self._gone(node, pods)

    async def _evict(self, pod: Pod) -> str:
        """Evict a pod, however often that takes; returns why that was not possible."""
        self._teller.about(pod, DELETING)
        clock = self._client.clock
        ends = clock.monotonic() + self._options.max_pod_eviction_time
        while True:
            why = await self._try_once(pod)
            if not why:
                self._metrics.evicted.labels("succeeded").inc()
                return ""
            if clock.monotonic() >= ends:
                break
            await clock.sleep(RETRY)
        self._metrics.evicted.labels("failed").inc()
        self._teller.about(pod, NOT_DELETED)
        return f"failed to evict pod {pod.key} within allowed timeout (last error: {why})"

    async def _try_once(self, pod: Pod) -> str:
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
        """Whether a pod is gone, and another one has its name."""
        try:
            found = await self._client.get(Pod, pod.namespace, pod.name)
        except NotFoundError:
            return True
        except ClientError:
            return False
        return found.metadata.uid != pod.metadata.uid

    async def _gone(self, node: str, pods: Sequence[Pod]) -> None:
        """Wait until none of the pods is on the node."""
        clock = self._client.clock
        ends = clock.monotonic() + self._options.max_graceful_termination_sec + HEADROOM
        waited_for = {pod.metadata.uid for pod in pods}
        while True:
            still = await self._still_there(node, waited_for)
            if not still:
                return
            if clock.monotonic() >= ends:
                raise DrainError(f"pods remaining after timeout: {', '.join(still)}")
            await clock.sleep(LOOK)

    async def _still_there(self, node: str, uids: set[str]) -> list[str]:
        try:
            pods = await pods_on(self._client, node)
        except ClientError as error:
            log.warning("cannot see which pods are left on node %s: %s", node, error)
            return ["nobody knows which"]
        return [pod.key for pod in pods if pod.metadata.uid in uids]


DELAY = "delay-deletion.cluster-autoscaler.kubernetes.io/"
"""What annotations of a node begin with that ask for a delay before it is deleted."""


class NodeDrainer:
    """Prepares nodes for their deletion."""

    def __init__(
        self,
        client: Client,
        options: AutoscalerOptions,
        evictor: Evictor,
        scene: Callable[[], DrainContext],
    ) -> None:
        self._client = client
        self._options = options
        self._evictor = evictor
        self._scene = scene

    async def prepare(self, job: NodeDeletion) -> None:
        """Empty a node; StaysError if it must stay."""
        try:
            moves = await self._moves(job)
            if job.drains or not moves.moved:
                await self._evictor.drain(job.name, moves.moved, self._daemons(moves))
                await self._delayed(job)
                return
        except (ClientError, DrainError) as error:
            raise StaysError(str(error)) from error
        raise StaysError(f"new pods scheduled: {moves.moved[0].key}")

    async def check(self, job: NodeDeletion) -> None:
        """The last look: StaysError if the node would take something with it, or is another."""
        try:
            left = await pods_on(self._client, job.name)
            found = await self._node(job)
        except ClientError as error:
            raise StaysError(str(error)) from error
        lost = left_behind(left, self._client, self._options.expendable_pods_priority_cutoff)
        if lost:
            raise StaysError(f"pods have come: {', '.join(pod.key for pod in lost)}")
        if found is not None and found.metadata.uid != job.node.metadata.uid:
            raise StaysError("another node has its name")

    async def _moves(self, job: NodeDeletion) -> PodMoves:
        cutoff = self._options.expendable_pods_priority_cutoff
        there = await pods_on(self._client, job.name)
        pods = [pod for pod in there if not is_expendable(pod, cutoff)]
        found = pod_moves(pods, self._scene())
        if isinstance(found, BlockingPod):
            raise StaysError(f"{found.pod} keeps it: {found.reason.value}")
        if found.on_completion:
            raise StaysError(f"active on-completion pods present: {found.on_completion[0].key}")
        return found

    def _daemons(self, moves: PodMoves) -> list[Pod]:
        options = self._options
        by_default = (
            options.daemonset_eviction_for_occupied_nodes
            if moves.moved
            else options.daemonset_eviction_for_empty_nodes
        )
        return [pod for pod in moves.daemons if is_evicted_daemon(pod, by_default)]

    async def _delayed(self, job: NodeDeletion) -> None:
        """Wait while annotations ask for it, but not for ever."""
        clock = self._client.clock
        ends = clock.monotonic() + self._options.node_deletion_delay_timeout
        while clock.monotonic() < ends:
            node = await self._node(job)
            if node is None or not any(key.startswith(DELAY) for key in node.metadata.annotations):
                return
            await clock.sleep(LOOK)

    async def _node(self, job: NodeDeletion) -> Node | None:
        try:
            return await self._client.get(Node, job.name)
        except NotFoundError:
            return None
