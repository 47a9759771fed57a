"""A take of a story that happens in a cluster: in virtual time, with the whole crew at work.

Between two steps time stands still, so two takes can go beside each other in one thread, each on an
event loop of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Self

from bayplan.base.virtualloop import VirtualLoop
from bayplan.client import Client
from bayplan.embedded.simulation.clusterfile import read_cluster
from bayplan.fit import Profile
from bayplan.kube.gates import FeatureGates
from bayplan.lab.crew import Crew, Member, muster
from bayplan.lab.measuring import Grid, Meter
from bayplan.lab.stories.counting import ClusterFigures, Counting
from bayplan.lab.stories.story import Frame, Take
from bayplan.lab.virtual import VirtualLab

STEP = 5.0
AT_WORK: frozenset[Member] = frozenset({"scheduler", "autoscaler", "queues"})
"""The node agent is there where the cluster file has attach limits."""


@dataclass(frozen=True, slots=True)
class Act:
    """Something that somebody does to the cluster."""

    at: float
    """Seconds from the beginning."""
    name: str
    do: Callable[[Client], Awaitable[str]]
    """Does it, and says what came of it; empty if it is a moment to tell what was before."""


class ClusterTake:
    """A virtual cluster, stepped through."""

    def __init__(self, file: Path, gates: FeatureGates, until: float, acts: Sequence[Act]) -> None:
        self._file = file
        self._crew = Crew(AT_WORK, Profile(gates=gates))
        self._until = until
        self._acts = sorted(acts, key=lambda act: act.at)
        self._stack = ExitStack()
        self._now = 0.0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._runner = stack.enter_context(asyncio.Runner(loop_factory=VirtualLoop))
            self._lab = self._runner.run(self._opened())
            stack.callback(lambda: self._runner.run(self._lab.__aexit__(None, None, None)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    async def _opened(self) -> VirtualLab:
        aboard = muster(self._crew, read_cluster(self._file), lambda: lab.simulation.provider)
        lab = VirtualLab(aboard.spec, aboard.daemons, webhooks=aboard.webhooks)
        meter = Meter(lab.simulation, Grid.over(self._until), lambda *_: "")
        lab.plane.store.listeners.append(meter.observe)
        self._counting = Counting(lab.simulation, meter.stuck)
        await lab.__aenter__()
        self._counting.begin()
        return lab

    @property
    def length(self) -> int:
        """How many steps there are."""
        return ceil(self._until / STEP)

    def step(self) -> Frame | None:
        """Go on by some seconds."""
        if self._now >= self._until:
            return None
        self._now = min(self._now + STEP, self._until)
        return self._runner.run(self._stepped(self._now))

    async def _stepped(self, until: float) -> Frame:
        while self._acts and self._acts[0].at < until:
            act = self._acts.pop(0)
            await self._lab.run(act.at)
            figures = self._counting.figures
            if said := await act.do(self._lab.client()):
                figures.answers[act.name] = said
            else:
                figures.bought_before[act.name] = figures.bought
        await self._lab.run(until)
        return self._counting.count()

    @property
    def figures(self) -> ClusterFigures:
        """What it has come to so far."""
        return self._counting.figures


def in_cluster(minutes: float, *acts: Act) -> Callable[[Path, FeatureGates], Take[ClusterFigures]]:
    """Takes that last so long, and in which somebody does that."""
    return lambda file, gates: ClusterTake(file, gates, minutes * 60, acts)
