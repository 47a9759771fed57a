"""A story as data: its text, cluster, feature gate and expected result.

A story runs twice, with its gate on and off; both runs advance step by step side by side. Each step
gives a frame, the current state; at the end a run has its figures. The checks of a story compare
the figures of both runs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from bayplan.kube.gates import FeatureGates

F = TypeVar("F", bound="StoryFigures")
F_co = TypeVar("F_co", bound="StoryFigures", covariant=True)
Row = tuple[str, str]
"""A label and its value."""
_CLUSTERS = Path(__file__).parent / "clusters"


class StoryFigures(Protocol):
    """The figures of a run."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """The rows of a table."""
        ...

    @property
    def headline(self) -> str:
        """A summary in one line."""
        ...


@dataclass(frozen=True, slots=True)
class StoryFrame:
    """The state of a run at a time."""

    time: str
    rows: tuple[Row, ...]
    log: str
    """The state in one line."""


class StoryRun(Protocol[F_co]):
    """One run of a story; a context manager that cleans up at its end."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    @property
    def length(self) -> int:
        """The number of steps."""
        ...

    def step(self) -> StoryFrame | None:
        """Advance by one step; return None if the story is over."""
        ...

    @property
    def figures(self) -> F_co:
        """The figures so far."""
        ...


@dataclass(frozen=True, slots=True)
class StoryCheck:
    """An expected result, as text with the figures of the run, and whether it holds."""

    text: str
    holds: bool


@dataclass(frozen=True)
class Story(Generic[F]):
    """One story."""

    number: int
    title: str
    text: str
    """What happens with the gate on, in a short paragraph."""
    before: str
    """What happens with the gate off, in a sentence."""
    gate: str
    file: str
    """Its cluster file."""
    start: Callable[[Path, FeatureGates], StoryRun[F]]
    check: Callable[[F, F], tuple[StoryCheck, ...]]
    """Returns the checks, given the figures with the gate on and off."""
    commands: tuple[str, ...]
    """Commands to try on its cluster while it is kept running."""

    @property
    def cluster(self) -> Path:
        """The path of its cluster file."""
        return _CLUSTERS / self.file

    def begin(self, *, on: bool) -> StoryRun[F]:
        """Return a run with the gate on or off."""
        return self.start(self.cluster, FeatureGates({self.gate: on}))
