"""Making a node ready to go, and looking once more before it does.

Between a plan and its execution pods come, budgets are spent and nodes vanish. So the node is read
afresh after its taint has been seen by schedulers: its pods are held against the drain rules again,
and evicted; and once more before it is deleted nothing may be on it that would be lost.
"""

from __future__ import annotations

from collections.abc import Callable

from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown.actuation.evictor import DrainError, Evictor
from bayplan.autoscaler.scaledown.actuation.jobs import Job, StaysError
from bayplan.autoscaler.scaledown.actuation.pods import left_behind, pods_on
from bayplan.autoscaler.scaledown.drain import Scene
from bayplan.autoscaler.scaledown.drain.pods import is_evicted_daemon
from bayplan.autoscaler.scaledown.expendable import is_expendable
from bayplan.autoscaler.scaledown.moves import Moves, moves_of
from bayplan.autoscaler.scaledown.reasons import BlockingPod
from bayplan.client import Client
from bayplan.client.errors import ClientError, NotFoundError
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod

DELAY = "delay-deletion.cluster-autoscaler.kubernetes.io/"
"""What annotations of a node begin with that ask for a delay before it is deleted."""
LOOK = 5.0


class Preparing:
    """Prepares nodes for their deletion."""

    def __init__(
        self,
        client: Client,
        options: AutoscalerOptions,
        evictor: Evictor,
        scene: Callable[[], Scene],
    ) -> None:
        self._client = client
        self._options = options
        self._evictor = evictor
        self._scene = scene

    async def prepare(self, job: Job) -> None:
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

    async def check(self, job: Job) -> None:
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

    async def _moves(self, job: Job) -> Moves:
        cutoff = self._options.expendable_pods_priority_cutoff
        there = await pods_on(self._client, job.name)
        pods = [pod for pod in there if not is_expendable(pod, cutoff)]
        found = moves_of(pods, self._scene())
        if isinstance(found, BlockingPod):
            raise StaysError(f"{found.pod} keeps it: {found.reason.value}")
        if found.on_completion:
            raise StaysError(f"active on-completion pods present: {found.on_completion[0].key}")
        return found

    def _daemons(self, moves: Moves) -> list[Pod]:
        options = self._options
        by_default = (
            options.daemonset_eviction_for_occupied_nodes
            if moves.moved
            else options.daemonset_eviction_for_empty_nodes
        )
        return [pod for pod in moves.daemons if is_evicted_daemon(pod, by_default)]

    async def _delayed(self, job: Job) -> None:
        """Wait while annotations ask for it, but not for ever."""
        clock = self._client.clock
        ends = clock.monotonic() + self._options.node_deletion_delay_timeout
        while clock.monotonic() < ends:
            node = await self._node(job)
            if node is None or not any(key.startswith(DELAY) for key in node.metadata.annotations):
                return
            await clock.sleep(LOOK)

    async def _node(self, job: Job) -> Node | None:
        try:
            return await self._client.get(Node, job.name)
        except NotFoundError:
            return None
