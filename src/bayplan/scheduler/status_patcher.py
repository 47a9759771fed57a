"""Status patches of pods, written in the background: the latest of each pod, and only what is new.

A pod that is tried again before its last status was written needs only the newer one. What was
written and has not come back through the watch yet counts as known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from bayplan.client.errors import ClientError, NotFoundError
from bayplan.kube.meta import Condition
from bayplan.kube.pods import Pod
from bayplan.scheduler import messages

log = logging.getLogger(__name__)
Write = Callable[[Pod, dict[str, object]], Awaitable[None]]
"""Changes a pod's status."""
WORKERS = 8


class StatusPatcher:
    """The statuses that wait to be written."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._wanted: dict[str, tuple[Pod, dict[str, object]]] = {}
        self._said: dict[str, tuple[str, str, str | None]] = {}
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = 0

    def patch_status(self, pod: Pod, condition: Condition | None, nominated: str | None) -> bool:
        """Have a pod's condition and nomination written; returns whether they are new."""
        patch = messages.status_patch(pod, condition, nominated)
        if patch is None:
            return False
        uid = pod.metadata.uid
        saying = (
            condition.reason if condition is not None else "",
            condition.message if condition is not None else "",
            nominated,
        )
        if self._said.get(uid) == saying:
            return False
        self._said[uid] = saying
        self._wanted[uid] = (pod, patch)
        self._idle.clear()
        self._news.set()
        return True

    def forget(self, uid: str) -> None:
        """Forget a pod that has a node, or is gone."""
        self._said.pop(uid, None)
        self._wanted.pop(uid, None)

    async def drain(self) -> None:
        """Wait until all patches are written, or were rejected."""
        await self._idle.wait()

    async def run(self) -> None:
        """Write until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            while not self._wanted:
                if not self._busy:
                    self._idle.set()
                self._news.clear()
                await self._news.wait()
            uid = next(iter(self._wanted))
            pod, patch = self._wanted.pop(uid)
            self._busy += 1
            try:
                await self._write(pod, patch)
            except NotFoundError:
                self._said.pop(uid, None)
            except ClientError as error:
                # The next attempt of this pod patches it again.
                self._said.pop(uid, None)
                log.info("status of pod %s not written: %s", pod.key, error)
            finally:
                self._busy -= 1
