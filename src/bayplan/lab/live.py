"""A cluster in real time, which kubectl can reach over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.lab.datafile import read_data_file_time
from bayplan.lab.lab import Daemon, Lab

_SKEW = timedelta(minutes=5)
"""How far the system clock may have been set back."""


class LiveLab(Lab):
    """One cluster behind an API server, in the time of the configured clock."""

    def __init__(
        self, spec: ClusterSpec, config: ServerConfig, daemons: Sequence[Daemon] = ()
    ) -> None:
        _check_data_time(config)
        self.server = ApiServer(config)
        super().__init__(spec, self.server.plane, daemons, renew_leases=True)

    async def _open(self) -> None:
        await self.server.start()

    async def _close(self) -> None:
        await self.server.stop()


def _check_data_time(config: ServerConfig) -> None:
    """Raise StoreError for a data file whose time is in the future."""
    recorded = read_data_file_time(config.data)
    if recorded is not None and recorded > config.clock.now() + _SKEW:
        raise StoreError(
            f"{config.data}: its time after a virtual run is {recorded:%Y-%m-%d %H:%M:%S}, in the"
            " future; use it in virtual time only"
        )
