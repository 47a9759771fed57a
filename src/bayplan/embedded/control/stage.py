"""What every simulated part is given: the view, the time, the dice and the faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from bayplan.embedded.control.faults import FaultBoard
from bayplan.embedded.control.view import View
from bayplan.kube.clock import Clock
from bayplan.kube.times import timestamp


@dataclass(slots=True)
class Stage:
    """The surroundings of controllers."""

    view: View
    clock: Clock
    rng: Random
    faults: FaultBoard = field(default_factory=FaultBoard)

    def seconds(self) -> float:
        """The time as seconds since the epoch."""
        return self.clock.now().timestamp()

    def now(self) -> str:
        """The time as objects carry it."""
        return timestamp(self.clock.now())

    def about(self, seconds: float, spread: float = 0.2) -> float:
        """A duration that varies a little from case to case."""
        return seconds * self.rng.uniform(1 - spread, 1 + spread)
