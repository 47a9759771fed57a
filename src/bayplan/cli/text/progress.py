"""How far a command has come: a bar with a percentage, on standard error, and only on a terminal.

Reading the dump is the first half, what is done with it the second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from bayplan.cli.text.output import notices, printable

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
LOADING, WHOLE = 50.0, 100.0
_LONGEST_NAME = 40


class Several(Sized, Iterable[T_co], Protocol[T_co]):
    """Things that can be counted before they are gone through."""


class Bar:
    """A bar that is gone when all is done; nothing at all where nobody looks."""

    def __init__(self) -> None:
        console = notices()
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn())
        self._bar = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self._task = self._bar.add_task("Loading", total=WHOLE)
        self._depth = 0

    def __enter__(self) -> Self:
        self._depth += 1
        if self._depth == 1:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._depth -= 1
        if not self._depth:
            self._bar.stop()

    def loading(self, number: int, sources: int) -> Callable[[str, int, float], None]:
        """Told of the reading of one of some sources."""

        def tell(name: str, count: int, share: float) -> None:
            said = f"Loading {printable(name)[-_LONGEST_NAME:]}: {count:,} objects"
            self.at(said, LOADING * (number + share) / sources)

        return tell

    def computing(self, said: str, things: Several[T], start: float = LOADING) -> Iterator[T]:
        """Go through things, the second half of all that is to be done."""
        for number, one in enumerate(things):
            self.at(f"{said} {number + 1:,} of {len(things):,}", start, number / len(things))
            yield one

    def at(self, said: str, percent: float, share_of_rest: float = 0.0) -> None:
        """Say what is being done, and how far that is."""
        done = percent + (WHOLE - percent) * share_of_rest
        self._bar.update(self._task, description=said, completed=done)


_LINES = 10
"""Lines in all, where nobody watches a bar."""


@contextmanager
def show_runs(runs: int) -> Iterator[Callable[[int, float], None]]:
    """Something to tell the number of a run and how far it is."""
    shares = [0.0] * runs
    console = notices()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(_said(shares), total=float(runs))
        lines = 0

        def tell(number: int, share: float) -> None:
            nonlocal lines
            shares[number] = max(shares[number], share)
            done = sum(shares)
            bar.update(task, description=_said(shares), completed=done)
            if not console.is_terminal and done >= runs * (lines + 1) / _LINES:
                lines = int(done * _LINES / runs)
                console.print(f"{_said(shares)}, {100 * done / runs:.0f} %")

        yield tell


def _said(shares: list[float]) -> str:
    done = sum(share >= 1 for share in shares)
    return f"{done} of {len(shares)} runs"
