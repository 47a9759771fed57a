"""A run in virtual time: an API server without HTTP, a clock that jumps, and a log."""

from __future__ import annotations

from datetime import datetime
from random import Random
from types import TracebackType
from typing import Self, TextIO

from bayplan.embedded.control.pace import VirtualPace
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.log import RunLog
from bayplan.embedded.simulation.plane import ControlPlane
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.kube.clock import START, VirtualClock


class VirtualRun:
    """One simulated cluster in virtual time; the same spec gives the same run to the byte.

    `turns` is for runs with tasks beside the simulation's own (see `VirtualPace`).
    """

    def __init__(
        self,
        spec: ClusterSpec,
        *,
        start: datetime = START,
        log: TextIO | None = None,
        turns: int = 0,
    ) -> None:
        self.clock = VirtualClock(start)
        self.pace = VirtualPace(self.clock, turns)
        self.plane = ControlPlane(self.clock, Random(spec.seed))  # noqa: S311 - not for secrets
        self.log = RunLog(self.pace, log)
        self.plane.store.listeners.append(self.log.observe)
        self.simulation = Simulation(self.plane.backend, spec, self.pace, renew_leases=False)
        self.simulation.engine.keep_house(self.plane.tidy)

    async def __aenter__(self) -> Self:
        await self.plane.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.plane.stop()
