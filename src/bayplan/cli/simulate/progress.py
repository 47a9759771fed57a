"""How far all runs are: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from bayplan.cli.output import notices

_LINES = 10
"""Lines in all, where nobody watches a bar."""


@contextmanager
def told(runs: int) -> Iterator[Callable[[int, float], None]]:
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
