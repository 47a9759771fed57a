"""A cluster in virtual time: the same parts, as fast as possible, and deterministic.

    def main() -> None:
        run_virtually(simulate_day())

    async def simulate_day() -> None:
        async with VirtualLab(spec, daemons=[lead]) as lab:
            await lab.run(until=24 * 3600)

It needs a `VirtualLoop`. Nothing listens; clients and webhooks are in the same process. With a data
file the objects are kept, and the next run with that file continues where this one ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random
from typing import TextIO, TypeVar

from bayplan.base.clock import START, LoopClock
from bayplan.base.virtualloop import VirtualLoop
from bayplan.embedded.apiserver.admission.webhooks.dispatch import InProcessWebhookTransport
from bayplan.embedded.apiserver.authorization.rbac import Attributes, AuthorizationDecision
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.asgi import App
from bayplan.embedded.control.engine import random_source
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.log import RunLog
from bayplan.lab.datafile import read_data_file_time
from bayplan.lab.lab import Daemon, Lab

T = TypeVar("T")


def run_virtually(work: Coroutine[object, object, T]) -> T:
    """Run a coroutine in virtual time and return its result."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


class VirtualLab(Lab):
    """One cluster in virtual time; the same spec and daemons give the same run."""

    def __init__(  # noqa: PLR0913 - each has its default
        self,
        spec: ClusterSpec,
        daemons: Sequence[Daemon] = (),
        *,
        start: datetime | None = None,
        data: Path | None = None,
        log: TextIO | None = None,
        webhooks: Mapping[str, App] | None = None,
        audit: Callable[[Attributes, AuthorizationDecision], None] | None = None,
    ) -> None:
        """With an `audit`, RBAC applies, and `audit` is called with every decision."""
        self._loop = _virtual_loop()
        config = PlaneConfig(
            data=data,
            allow_privileged=True,
            authorization="always-allow" if audit is None else "rbac",
            audit=audit,
            clock=LoopClock(start or read_data_file_time(data) or START),
            rng=Random(),  # noqa: S311 - not for secrets
            webhooks=lambda _: InProcessWebhookTransport(webhooks or {}),
        )
        plane = ControlPlane(config)
        config.rng.setstate(random_source(spec.seed, plane.store.revision).getstate())
        super().__init__(spec, plane, daemons, renew_leases=False)
        self.log = RunLog(self.simulation.engine.now, log)
        self.plane.store.listeners.append(self.log.observe)

    async def run(self, until: float | None = None) -> None:
        """Run until a time, and until no daemon has work left at that time."""
        await super().run(until)
        await self._loop.idle()
        while self.simulation.engine.is_busy:
            await super().run(until)
            await self._loop.idle()


def _virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    if not isinstance(loop, VirtualLoop):
        raise TypeError("a virtual cluster needs a VirtualLoop: use run_virtually")
    return loop
