"""Progress of a command: a bar with a percentage on standard error, only on a terminal.

The first half is reading the cluster, the second half is the computation.
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


class SizedIterable(Sized, Iterable[T_co], Protocol[T_co]):
    """An iterable whose length is known."""


class ProgressBar:
    """A progress bar that disappears at the end; nothing if stderr is not a terminal."""

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
        """Return the callback for the progress of reading one of several sources."""

        def report(name: str, count: int, share: float) -> None:
            text = f"Loading {printable(name)[-_LONGEST_NAME:]}: {count:,} objects"
            self.at(text, LOADING * (number + share) / sources)

        return report

    def computing(self, text: str, items: SizedIterable[T], start: float = LOADING) -> Iterator[T]:
        """Yield items and report the progress, as the second half of the bar."""
        for number, one in enumerate(items):
            self.at(f"{text} {number + 1:,} of {len(items):,}", start, number / len(items))
            yield one

    def at(self, text: str, percent: float, share_of_rest: float = 0.0) -> None:
        """Show the current step and the progress."""
        done = percent + (WHOLE - percent) * share_of_rest
        self._bar.update(self._task, description=text, completed=done)


_LINES = 10
"""The number of progress lines if stderr is not a terminal."""


@contextmanager
def show_runs(runs: int) -> Iterator[Callable[[int, float], None]]:
    """Yield a callback for the number of a run and its progress."""
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
        task = bar.add_task(_summary(shares), total=float(runs))
        lines = 0

        def report_progress(number: int, share: float) -> None:
            nonlocal lines
            shares[number] = max(shares[number], share)
            done = sum(shares)
            bar.update(task, description=_summary(shares), completed=done)
            if not console.is_terminal and done >= runs * (lines + 1) / _LINES:
                lines = int(done * _LINES / runs)
                console.print(f"{_summary(shares)}, {100 * done / runs:.0f} %")

        yield report_progress


def _summary(shares: list[float]) -> str:
    done = sum(share >= 1 for share in shares)
    return f"{done} of {len(shares)} runs"
