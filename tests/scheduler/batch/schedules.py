"""Random schedules: trees of queues, jobs that come and go, faults, schedulers that are killed."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.scheduler.faults.schedules import faults, moments
from tests.scheduler.faults.wire import Fault

ARRIVING = 60.0
LAST = 200.0
"""When the last fault has come to its end."""


@dataclass(frozen=True, slots=True)
class QueueMade:
    """A queue of a schedule."""

    name: str
    parent: str
    cpu: int | None
    strategy: str
    priority: int


@dataclass(frozen=True, slots=True)
class BindJob:
    """Some pods that come together, and what happens to them."""

    name: str
    queue: str
    at: float
    pods: int
    least: int
    cpu: int
    priority: str
    gate: str
    """gated, asked (without the gate), or none."""
    ends_at: float | None
    gracefully: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """All that happens in one run."""

    queues: tuple[QueueMade, ...]
    jobs: tuple[BindJob, ...]
    faults: tuple[Fault, ...]
    killed_at: float | None
    nodes: int

    @property
    def leaves(self) -> list[str]:
        """The queues that take work."""
        parents = {one.parent for one in self.queues}
        return [one.name for one in self.queues if one.name not in parents]


@st.composite
def trees(draw: st.DrawFn) -> tuple[QueueMade, ...]:
    """Up to three levels of queues."""
    made: list[QueueMade] = []
    for number in range(draw(st.integers(1, 5))):
        inner = [one.name for one in made if not one.parent]
        made.append(
            QueueMade(
                f"q{number}",
                draw(st.sampled_from(("", "", *inner))),
                draw(st.one_of(st.none(), st.integers(1, 8))),
                draw(st.sampled_from(("", "", "fifo"))),
                draw(st.sampled_from((0, 0, 5))),
            )
        )
    return tuple(made)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    """A whole run."""
    queues = draw(trees())
    leaves = Schedule(queues, (), (), None, 0).leaves
    jobs = []
    for number in range(draw(st.integers(1, 10))):
        pods = draw(st.sampled_from((1, 1, 2, 3, 4)))
        jobs.append(
            BindJob(
                f"j{number}",
                draw(st.sampled_from(leaves)),
                draw(moments(ARRIVING)),
                pods,
                draw(st.integers(1, pods)),
                draw(st.integers(1, 3)),
                draw(st.sampled_from(("", "", "high"))),
                draw(st.sampled_from(("gated", "gated", "gated", "asked", "none"))),
                draw(st.one_of(st.none(), moments(LAST))),
                draw(st.booleans()),
            )
        )
    return Schedule(
        queues,
        tuple(jobs),
        draw(st.lists(faults(), max_size=4).map(tuple)),
        draw(st.one_of(st.none(), st.none(), moments(100.0))),
        draw(st.integers(0, 2)),
    )
