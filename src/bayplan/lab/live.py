"""A cluster on the wall's clock: kubectl can talk to it over HTTPS."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.lab.lab import Daemon, Lab
from bayplan.lab.moment import moment_of

_SKEW = timedelta(minutes=5)
"""By how much the wall's clock may have been put back."""


class LiveLab(Lab):
    """One cluster behind an API server, in the time of the clock that its configuration names."""

    def __init__(
        self, spec: ClusterSpec, config: ServerConfig, daemons: Sequence[Daemon] = ()
    ) -> None:
        _check_moment(config)
        self.server = ApiServer(config)
        super().__init__(spec, self.server.plane, daemons, renew_leases=True)

    async def _open(self) -> None:
        await self.server.start()

    async def _close(self) -> None:
        await self.server.stop()


def _check_moment(config: ServerConfig) -> None:
    """What is dated in the future would wait until then: StoreError."""
    kept = moment_of(config.data)
    if kept is not None and kept > config.clock.now() + _SKEW:
        raise StoreError(
            f"{config.data}: a virtual run has brought it to {kept:%Y-%m-%d %H:%M:%S}, which is"
            " still to come; go on with it in virtual time"
        )
