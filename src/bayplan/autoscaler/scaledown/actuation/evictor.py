"""Emptying a node: every pod is evicted with its grace, and waited for until it is gone.

An eviction that a budget refuses, or that fails, is tried again for a while. Daemons are asked to
go as well where they should, but nobody waits for them. Pods are known by their uid: another one of
the same name is not touched, and means that the old one is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from bayplan.autoscaler.options import ScaleDownOptions
from bayplan.autoscaler.scaledown.actuation.pods import pods_on
from bayplan.autoscaler.scaledown.drain.pods import grace_of
from bayplan.autoscaler.scaledown.metrics import ScaleDownMetrics
from bayplan.autoscaler.telling.messages import Notice
from bayplan.autoscaler.telling.teller import Teller
from bayplan.client import Client
from bayplan.client.errors import ClientError, ConflictError, NotFoundError
from bayplan.kube.pods import Pod

log = logging.getLogger(__name__)
RETRY = 10.0
"""Seconds between tries to evict a pod."""
HEADROOM = 30.0
"""Seconds that a pod may take beyond its grace."""
LOOK = 5.0
"""Seconds between looks at who is still there."""
ACTION = "ScaleDown"
DELETING = Notice("Normal", "ScaleDown", "deleting pod for node scale down", ACTION)
NOT_DELETED = Notice("Warning", "ScaleDownFailed", "failed to delete pod for ScaleDown", ACTION)


class DrainError(Exception):
    """A node could not be emptied."""


class Evictor:
    """Evicts through a client."""

    def __init__(
        self, client: Client, options: ScaleDownOptions, teller: Teller, metrics: ScaleDownMetrics
    ) -> None:
        self._client = client
        self._options = options
        self._teller = teller
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
