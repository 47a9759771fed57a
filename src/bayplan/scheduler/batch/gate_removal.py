"""Scheduling gates, removed in the background by a bounded number of workers.

A removal is kept until the server has carried it out, or the pod is gone. One that failed is tried
again, after twice as long each time, and the others go on meanwhile. Each write is guarded by the
pod's uid and gate; where they have changed the pod is read again, since the gate may be gone, or
the pod be another of that name. Nothing is lost in a restart: a pod that still has its gate is
still there to be admitted.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import exponential_delay
from bayplan.client.errors import ClientError, ConflictError, InvalidError, NotFoundError
from bayplan.kube.pods import Pod
from bayplan.scheduler.wakeup import wait_for_event

log = logging.getLogger(__name__)
WORKERS = 8
"""Removals that are sent and not answered yet, at most."""
SHORTEST, LONGEST = 0.5, 30.0
"""Seconds until a failed removal is tried again, at first and at most."""


class Ungated(Enum):
    """The result of a removal; the values are labels of metrics."""

    REMOVED = "removed"
    GONE = "gone"
    """The server does not find it; it is tried again until the watch shows that it is gone."""
    FAILED = "failed"
    """Not yet; it is tried again."""


class GateWrites(Protocol):
    """The writes that gate removal needs."""

    async def ungate(self, pod: Pod) -> None:
        """Remove our gate from a pod that is as it was read."""
        ...

    async def read(self, pod: Pod) -> Pod | None:
        """Read the pod from the server; None if it was deleted or replaced."""
        ...


@dataclass(slots=True)
class _Removal:
    pod: Pod
    tries: int = 0


class GateRemoval:
    """The removals that are not carried out yet."""

    def __init__(
        self, writes: GateWrites, clock: Clock, ended: Callable[[Pod, Ungated], None]
    ) -> None:
        self._writes = writes
        self._clock = clock
        self._ended = ended
        self._open: dict[str, _Removal] = {}
        self._due: list[tuple[float, int, str]] = []
        self._number = 0
        self._news = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._busy = 0

    def __contains__(self, uid: str) -> bool:
        return uid in self._open

    def __len__(self) -> int:
        return len(self._open)

    def start(self, pod: Pod) -> None:
        """Have a pod's gate removed; again does no harm."""
        uid = pod.metadata.uid
        if uid not in self._open:
            self._open[uid] = _Removal(pod)
            self._idle.clear()
            self._put(uid, self._clock.monotonic())

    def drop(self, uid: str) -> None:
        """Cancel the removal: the pod was deleted, or has no gate any more."""
        if self._open.pop(uid, None) is not None:
            self._settle()

    async def drain(self) -> None:
        """Wait until everything that was started is carried out, or dropped."""
        await self._idle.wait()

    async def run(self) -> None:
        """Work until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            uid = self._next()
            if uid is None:
                await self._wait()
                continue
            self._busy += 1
            try:
                await self._carry_out(uid, self._open[uid])
            finally:
                self._busy -= 1
                self._settle()

    def _next(self) -> str | None:
        """Return a removal that is due."""
        now = self._clock.monotonic()
        while self._due and self._due[0][0] <= now:
            uid = heapq.heappop(self._due)[2]
            if uid in self._open:
                return uid
        return None

    async def _wait(self) -> None:
        self._news.clear()
        left = self._due[0][0] - self._clock.monotonic() if self._due else None
        await wait_for_event(self._clock, self._news, left)

    async def _carry_out(self, uid: str, removal: _Removal) -> None:
        try:
            result = await self._remove(removal)
        except ClientError as error:
            log.info("gate of pod %s not removed yet: %s", removal.pod.key, error)
            result = Ungated.FAILED
        if result is Ungated.REMOVED:
            self._open.pop(uid, None)
        elif uid in self._open:
            removal.tries += 1
            rest = exponential_delay(SHORTEST, LONGEST, removal.tries - 1)
            self._put(uid, self._clock.monotonic() + rest)
        self._ended(removal.pod, result)

    async def _remove(self, removal: _Removal) -> Ungated:
        try:
            await self._writes.ungate(removal.pod)
        except NotFoundError:
            return Ungated.GONE
        except (ConflictError, InvalidError) as error:
            return await self._read_again(removal, error)
        return Ungated.REMOVED

    async def _read_again(self, removal: _Removal, error: ClientError) -> Ungated:
        """Read a pod again that has changed."""
        pod = await self._writes.read(removal.pod)
        if pod is None:
            return Ungated.GONE
        if not pod.spec.scheduling_gates:
            return Ungated.REMOVED
        log.info("gate of pod %s not removed yet: %s", pod.key, error)
        removal.pod = pod
        return Ungated.FAILED

    def _put(self, uid: str, due: float) -> None:
        self._number += 1
        heapq.heappush(self._due, (due, self._number, uid))
        self._news.set()

    def _settle(self) -> None:
        if not self._open and not self._busy:
            self._idle.set()
