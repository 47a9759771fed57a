"""Progress bars of a pull: one for each layer, only on a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from bayplan.images.runtime.objects import ImageSpec, pull_steps

_SHORT_DIGEST = len("sha256:") + 12


@asynccontextmanager
async def pull_bars(socket: str, spec: ImageSpec) -> AsyncIterator[None]:
    """Show the progress of a pull."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bars.add_task(f"Pulling {spec.image}", total=None)
        task = asyncio.ensure_future(_follow(socket, spec, bars))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


async def _follow(socket: str, spec: ImageSpec, bars: Progress) -> None:
    known: dict[str, TaskID] = {}
    async for step in pull_steps(socket, spec):
        if step.digest not in known:
            known[step.digest] = bars.add_task(step.digest[:_SHORT_DIGEST], total=step.total)
        description = f"{step.digest[:_SHORT_DIGEST]} {step.phase}"
        bars.update(known[step.digest], completed=step.done, description=description)
