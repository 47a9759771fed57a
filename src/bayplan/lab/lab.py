"""A whole cluster in one process: a control plane, the simulation around it, and daemons.

    async with VirtualLab(spec, daemons=[scheduler.lead]) as lab:
        client = lab.client()
        await lab.run(until=24 * 3600)

A daemon is its `lead`: a coroutine function that takes a client, which has the clock and the random
numbers for the daemon, and runs until it is cancelled. A separate process runs the same function
once it is elected leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from types import TracebackType
from typing import Self

from bayplan.client.client import Client, ClientOptions
from bayplan.client.daemon import Lead as Daemon
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.apiserver.identity import AUTHENTICATED
from bayplan.embedded.apiserver.request import ADMIN, UserInfo
from bayplan.embedded.control.engine import random_source
from bayplan.embedded.inprocess import in_process_client
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.lab.datafile import DataFileTime

__all__ = ["Daemon", "DaemonFailedError", "Lab"]


class DaemonFailedError(Exception):
    """A daemon failed; the cause of this error is its exception."""


class Lab:
    """One cluster: base of `LiveLab` and `VirtualLab`."""

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
        self._data_time = DataFileTime(plane.database, self.clock)
        plane.store.listeners.append(self._data_time.observe)
        plane.database.on_failure.append(self.stop)
        self._rng = random_source(spec.seed, plane.store.revision, "clients")
        self._clients: list[Client] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._failed: BaseException | None = None

    def client(
        self, user: str = "", groups: Sequence[str] = (), *, options: ClientOptions | None = None
    ) -> Client:
        """Return a client of this cluster, by default as administrator; closed with the lab."""
        identity = UserInfo(user, (*groups, AUTHENTICATED)) if user else ADMIN
        rng = Random(self._rng.getrandbits(64))  # noqa: S311 - not for secrets
        made = in_process_client(self.plane, identity, rng=rng, options=options)
        self._clients.append(made)
        return made

    async def run(self, until: float | None = None) -> None:
        """Run until a time, in seconds from the start, or until stopped.

        Raise DaemonFailedError if a daemon fails, StoreError if the data file does.
        """
        await self.simulation.run(until)
        self._check()

    async def forward(self, seconds: float) -> None:
        """Run for some more seconds."""
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
            self._data_time.record()
        await self._close()
        if error is None:
            self._check()

    async def _open(self) -> None:
        await self.plane.start()

    async def _close(self) -> None:
        await self.plane.stop()

    def _start(self, daemon: Daemon) -> asyncio.Task[None]:
        name = f"daemon {getattr(daemon, '__qualname__', daemon)}"
        task = asyncio.create_task(_run_daemon(daemon, self.client()), name=name)
        task.add_done_callback(self._on_daemon_end)
        return task

    def _on_daemon_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = self._failed or error
            self.stop()

    def _check(self) -> None:
        if self.plane.database.failure is not None:
            raise self.plane.database.failure
        if self._failed is not None:
            failed, self._failed = self._failed, None
            raise DaemonFailedError(f"a daemon failed: {failed!r}") from failed


async def _run_daemon(daemon: Daemon, client: Client) -> None:
    await daemon(client)
