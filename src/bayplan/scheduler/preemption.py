"""Preemptions, carried out in the background: victims are marked and deleted.

While that goes on the preemptor may not look for other victims. It waits in the queue for its
victims to go, like any pod that was refused; if they cannot be deleted it loses its nomination and
is tried again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from bayplan.base.clock import Clock
from bayplan.client.errors import ClientError
from bayplan.kube.pods import Pod
from bayplan.kube.times import timestamp
from bayplan.scheduler.writes import Writes

log = logging.getLogger(__name__)
AT_ONCE = 16


class Preemptions:
    """The preemptions that are under way."""

    def __init__(
        self,
        writes: Writes,
        clock: Clock,
        left: Callable[[Pod, Pod, str], None],
        failed: Callable[[Pod], None],
    ) -> None:
        self._writes = writes
        self._clock = clock
        self._left = left
        self._failed = failed
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._hands = asyncio.Semaphore(AT_ONCE)

    def __contains__(self, uid: str) -> bool:
        return uid in self._under_way

    def __len__(self) -> int:
        return len(self._under_way)

    def start(self, preemptor: Pod, victims: Sequence[Pod], node: str) -> None:
        """Evict the victims."""
        uid = preemptor.metadata.uid
        task = asyncio.ensure_future(self._evict_all(preemptor, victims, node))
        self._under_way[uid] = task
        task.add_done_callback(lambda _: self._under_way.pop(uid, None))

    async def drain(self) -> None:
        """Wait until all are carried out."""
        while self._under_way:
            await asyncio.wait(set(self._under_way.values()))

    def cancel(self) -> None:
        """Stop where they are."""
        for task in self._under_way.values():
            task.cancel()

    async def _evict_all(self, preemptor: Pod, victims: Sequence[Pod], node: str) -> None:
        leaving = [victim for victim in victims if not victim.is_terminating]
        sent = await asyncio.gather(*(self._evict(preemptor, one, node) for one in leaving))
        if not all(sent):
            self._failed(preemptor)

    async def _evict(self, preemptor: Pod, victim: Pod, node: str) -> bool:
        async with self._hands:
            now = timestamp(self._clock.now())
            try:
                await self._writes.evict_pod(victim, preemptor.spec.scheduler_name, now)
            except ClientError as error:
                log.warning("pod %s not evicted: %s", victim.key, error)
                return False
        self._left(preemptor, victim, node)
        return True
