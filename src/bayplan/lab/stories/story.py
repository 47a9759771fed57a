"""A story as data: what happens, in which cluster, with which gate, and what must come of it.

A story is told twice, with its gate on and off, in two takes that go step by step beside each
other. Each step gives a frame, what one sees just now; at the end a take has its figures. Whether
the story came out as promised is judged by the figures of both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar

from bayplan.kube.gates import FeatureGates

F = TypeVar("F", bound="Figures")
F_co = TypeVar("F_co", bound="Figures", covariant=True)
Row = tuple[str, str]
"""What it is called, and what it is."""
_CLUSTERS = Path(__file__).parent / "clusters"


class Figures(Protocol):
    """What a take came to."""

    @property
    def rows(self) -> tuple[Row, ...]:
        """For a table."""
        ...

    @property
    def headline(self) -> str:
        """In a line."""
        ...


@dataclass(frozen=True, slots=True)
class Frame:
    """What one sees at a moment."""

    time: str
    rows: tuple[Row, ...]
    log: str
    """The same in a line."""


class Take(Protocol[F_co]):
    """One run of a story; a context manager, whose end leaves nothing behind."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...

    @property
    def length(self) -> int:
        """How many steps there are, before the first."""
        ...

    def step(self) -> Frame | None:
        """Go on a little; None if the story is over."""
        ...

    @property
    def figures(self) -> F_co:
        """What it has come to so far."""
        ...


@dataclass(frozen=True, slots=True)
class Check:
    """Something that was promised, in words with the figures of the run, and whether it is so."""

    text: str
    holds: bool


@dataclass(frozen=True)
class Story(Generic[F]):
    """One story."""

    number: int
    title: str
    text: str
    """What happens, in a short paragraph."""
    before: str
    """What happens with the gate off, in a sentence."""
    gate: str
    file: str
    """Its cluster file."""
    take: Callable[[Path, FeatureGates], Take[F]]
    judge: Callable[[F, F], tuple[Check, ...]]
    """What was promised, given the figures with the gate on and off."""
    commands: tuple[str, ...]
    """What to ask its cluster, while it is kept up."""

    @property
    def cluster(self) -> Path:
        """The file of the cluster in which it happens."""
        return _CLUSTERS / self.file

    def begin(self, *, on: bool) -> Take[F]:
        """A take of it."""
        return self.take(self.cluster, FeatureGates({self.gate: on}))
