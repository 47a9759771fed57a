"""A whole cluster in one process: a control plane, what is simulated around it, and daemons.

    async with VirtualLab(spec, daemons=[scheduler.lead]) as lab:
        client = lab.client()
        await lab.run(until=24 * 3600)

A daemon is its `lead`: a coroutine function that is given a client, which has the clock and the
random numbers that the daemon is to use, and that works until it is cancelled. It is the same
function that a process of its own runs once it is elected; which of both it is in, it cannot tell.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import Self

from bayplan.client.client import Client, Tuning
from bayplan.client.daemon import Lead as Daemon
from bayplan.embedded.apiserver.identity import AUTHENTICATED
from bayplan.embedded.apiserver.plane import ControlPlane
from bayplan.embedded.apiserver.request import ADMIN, User
from bayplan.embedded.control.engine import dice
from bayplan.embedded.inprocess import in_process_client
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.lab.moment import MomentKeeper

__all__ = ["Daemon", "DaemonFailedError", "Lab"]


class DaemonFailedError(Exception):
    """A daemon ended by an exception, which is this one's cause."""


class Lab:
    """One cluster; `LiveLab` and `VirtualLab` say in what time."""

    def __init__(
        self,
        spec: ClusterSpec,
        plane: ControlPlane,
        daemons: Sequence[Daemon],
        *,
        renew_leases: bool,
    ) -> None:
        self.spec = spec
        self.plane = plane
        self.clock = plane.config.clock
        self.simulation = Simulation(plane.backend, spec, renew_leases=renew_leases)
        self._daemons = daemons
        self._moment = MomentKeeper(plane.database, self.clock)
        plane.store.listeners.append(self._moment.observe)
        plane.database.on_failure.append(self.stop)
        self._rng = dice(spec.seed, plane.store.revision, "clients")
        self._clients: list[Client] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: BaseException | None = None

    def client(
        self, user: str = "", groups: Sequence[str] = (), *, tuning: Tuning | None = None
    ) -> Client:
        """A client of this cluster, by default the administrator's; closed with the lab."""
        who = User(user, (*groups, AUTHENTICATED)) if user else ADMIN
        rng = Random(self._rng.getrandbits(64))  # noqa: S311 - not for secrets
        made = in_process_client(self.plane, who, rng=rng, tuning=tuning)
        self._clients.append(made)
        return made

    async def run(self, until: float | None = None) -> None:
        """Let time go by until a moment, in seconds from the beginning, or until stopped.

        DaemonFailedError if a daemon fails meanwhile, StoreError if the data file does.
        """
        await self.simulation.run(until)
        self._check()

    async def forward(self, seconds: float) -> None:
        """Let some more time go by."""
        await self.run(self.simulation.now() + seconds)

    def stop(self) -> None:
        """End `run`."""
        self.simulation.engine.stop()

    async def __aenter__(self) -> Self:
        await self._open()
        try:
            await self.simulation.prepare()
        except BaseException:
            await self._close()
            raise
        self._tasks = [self._start(daemon) for daemon in self._daemons]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for client in self._clients:
            await client.close()
        if self.plane.database.failure is None:
            self._moment.keep()
        await self._close()
        if error is None:
            self._check()

    async def _open(self) -> None:
        await self.plane.start()

    async def _close(self) -> None:
        await self.plane.stop()

    def _start(self, daemon: Daemon) -> asyncio.Task[None]:
        name = f"daemon {getattr(daemon, '__qualname__', daemon)}"
        task = asyncio.create_task(_led(daemon, self.client()), name=name)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = self._failed or error
            self.stop()

    def _check(self) -> None:
        if self.plane.database.failure is not None:
            raise self.plane.database.failure
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise DaemonFailedError(f"a daemon failed: {failed!r}") from failed


async def _led(daemon: Daemon, client: Client) -> None:
    await daemon(client)
