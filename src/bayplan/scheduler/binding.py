"""Binding: decisions carried out in the background by a bounded number of workers.

Pods whose claims must be bound first have a task of their own, since that may take minutes; when
their claims are bound they queue like the others.

A bind that failed may have been carried out all the same: the server acted and its answer was lost,
or an earlier one of ours succeeded. So the pod is looked up. As long as the result is unknown, the
capacity that it may have taken stays taken.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bayplan.client.errors import (
    ApiError,
    ClientError,
    ConflictError,
    DisconnectedError,
    NotFoundError,
    ServerTimeoutError,
    TimedOutError,
    UnavailableError,
    UnreachableError,
    UntrustedError,
)
from bayplan.fit import Assumption, ClaimBinding
from bayplan.kube.pods import Pod
from bayplan.scheduler.queue import QueuedPod
from bayplan.scheduler.volumes import VolumesFailedError
from bayplan.scheduler.writes import Writes

log = logging.getLogger(__name__)
IN_FLIGHT = 32
"""Binds that are sent and not answered yet, at most."""
TRIES = 3
"""How often a bind that was not answered is sent to the same node before others are waited for."""
NOT_SENT = (UnreachableError, UntrustedError, UnavailableError)
NOT_OVER = (DisconnectedError, TimedOutError, ServerTimeoutError)
"""After these the server may act yet."""


@dataclass(frozen=True, slots=True, eq=False)
class BindJob:
    """A decision to be carried out."""

    entry: QueuedPod
    pod: Pod
    node: str
    assumption: Assumption
    bind_timeout: float
    began: float


@dataclass(frozen=True, slots=True)
class Bound:
    """The pod is on its node."""


@dataclass(frozen=True, slots=True)
class Gone:
    """The pod is not there any more."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The pod is on another node."""

    pod: Pod


@dataclass(frozen=True, slots=True)
class Failed:
    """The pod is not bound."""

    problem: str


@dataclass(frozen=True, slots=True)
class Unknown:
    """The pod may be bound, or be bound yet, and could not be read."""

    problem: str


Result = Bound | Gone | Elsewhere | Failed | Unknown


class ClaimBinder(Protocol):
    """Binds the claims of a pod."""

    async def bind(self, bindings: Sequence[ClaimBinding], node: str, seconds: float) -> None:
        """Bind them for a pod on a node; VolumesFailedError if that cannot be done in time."""
        ...


class Binder:
    """Carries decisions out."""

    def __init__(
        self, writes: Writes, volumes: ClaimBinder, ended: Callable[[BindJob, Result], None]
    ) -> None:
        self._writes = writes
        self._volumes = volumes
        self._ended = ended
        self._ready: asyncio.Queue[BindJob] = asyncio.Queue()
        self._open: set[BindJob] = set()
        self._with_volumes: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._room.set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def under_way(self) -> int:
        """The number of binds in progress."""
        return len(self._open)

    @property
    def is_full(self) -> bool:
        """Whether it is better to wait before deciding more."""
        return not self._room.is_set()

    @property
    def is_busy(self) -> bool:
        """Whether pods come faster than one after the other."""
        return len(self._open) - len(self._with_volumes) > 1

    async def room(self) -> None:
        """Wait until more can be started."""
        await self._room.wait()

    async def drain(self) -> None:
        """Wait until everything is carried out."""
        await self._idle.wait()

    def start(self, job: BindJob) -> None:
        """Carry a decision out, soon."""
        self._open.add(job)
        self._idle.clear()
        if job.assumption.decision.bindings:
            task = asyncio.ensure_future(self._bind_volumes(job))
            self._with_volumes.add(task)
            task.add_done_callback(self._with_volumes.discard)
        else:
            self._enqueue(job)

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(IN_FLIGHT):
                    group.create_task(self._work())
        finally:
            for task in self._with_volumes:
                task.cancel()

    def _enqueue(self, job: BindJob) -> None:
        self._ready.put_nowait(job)
        if self._ready.qsize() >= IN_FLIGHT:
            self._room.clear()

    async def _bind_volumes(self, job: BindJob) -> None:
        bindings = job.assumption.decision.bindings
        try:
            await self._volumes.bind(bindings, job.node, job.bind_timeout)
        except VolumesFailedError as error:
            self._end(job, Failed(f"binding volumes: {error}"))
        except Exception as error:
            log.exception("the volumes of pod %s could not be bound", job.pod.key)
            self._end(job, Failed(f"binding volumes: {error}"))
        else:
            self._enqueue(job)

    async def _work(self) -> None:
        while True:
            job = await self._ready.get()
            if self._ready.qsize() < IN_FLIGHT:
                self._room.set()
            self._end(job, await self._bind(job))

    def _end(self, job: BindJob, result: Result) -> None:
        self._open.discard(job)
        if not self._open:
            self._idle.set()
        self._ended(job, result)

    async def _bind(self, job: BindJob) -> Result:
        result: Result = Failed("")
        for _ in range(TRIES):
            result = await self._bind_once(job)
            if not isinstance(result, Unknown):
                break
        return result

    async def _bind_once(self, job: BindJob) -> Result:
        try:
            await self._writes.bind(job.pod, job.node)
        except ClientError as error:
            problem = f"binding: {error}"
            return Failed(problem) if _is_refusal(error) else await self._look(job, error, problem)
        return Bound()

    async def _look(self, job: BindJob, error: ClientError, problem: str) -> Result:
        """Read the pod of a failed bind; return the result of the bind."""
        try:
            pod = await self._writes.read(job.pod)
        except ClientError as unanswered:
            return Unknown(f"{problem}; {unanswered}")
        if pod is None:
            return Gone()
        if pod.spec.node_name:
            return Bound() if pod.spec.node_name == job.node else Elsewhere(pod)
        return Unknown(problem) if isinstance(error, NOT_OVER) else Failed(problem)


def _is_refusal(error: ClientError) -> bool:
    """Whether the server has certainly not bound the pod, now or before."""
    if isinstance(error, NOT_SENT):
        return True
    is_answer = isinstance(error, ApiError) and error.code < 500
    return is_answer and not isinstance(error, ConflictError | NotFoundError)
