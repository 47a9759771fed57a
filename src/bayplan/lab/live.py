"""A cluster on the wall's clock: kubectl can talk to it over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.lab.lab import Daemon, Lab


class LiveLab(Lab):
    """One cluster behind an API server, in the time of the clock that its configuration names."""

    def __init__(
        self, spec: ClusterSpec, config: ServerConfig, daemons: Sequence[Daemon] = ()
    ) -> None:
        self.server = ApiServer(config)
        super().__init__(spec, self.server.plane, daemons, renew_leases=True)

    async def _open(self) -> None:
        await self.server.start()

    async def _close(self) -> None:
        await self.server.stop()
