"""A run on the wall clock: the real API server over HTTPS, and the simulated cluster around it."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.control.pace import WallPace
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.kube.clock import WallClock


class LiveRun:
    """One simulated cluster that kubectl can talk to."""

    def __init__(self, spec: ClusterSpec, config: ServerConfig) -> None:
        self.server = ApiServer(config)
        self.pace = WallPace(WallClock())
        self.simulation = Simulation(self.server.backend, spec, self.pace, renew_leases=True)

    async def __aenter__(self) -> Self:
        await self.server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.server.stop()
