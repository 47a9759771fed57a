"""A simulated cluster watched: on the page of `bayplan ui`, and in a recording."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from bayplan.cli.cluster import judged_as
from bayplan.cli.errors import BadInput
from bayplan.cli.output import notices, printable
from bayplan.client import Client
from bayplan.fit import Profile
from bayplan.lab import Daemon, Lab
from bayplan.observe.recorder import Recorder
from bayplan.recordings import RecordingFullError, RecordingWriter

NAME = "simulated cluster"
SELDOM = 600.0
"""Seconds of virtual time from one flush of a recording to the next: nobody reads it meanwhile."""


@asynccontextmanager
async def lab_page(lab: Lab, rules: Profile, *, wanted: bool = True) -> AsyncIterator[None]:
    """Serve the page of a cluster in this process, with its cloud, and say where."""
    if not wanted:
        yield
        return
    # Slow to import, and seldom wanted.
    from bayplan.cli.ui import served_page  # noqa: PLC0415
    from bayplan.ui.live import LiveSource, live_page  # noqa: PLC0415
    from bayplan.ui.report_answers import answers  # noqa: PLC0415
    from bayplan.ui.serving import Serving  # noqa: PLC0415

    source = LiveSource(
        NAME,
        kind="simulation",
        profile=judged_as(rules, None),
        answers=answers(rules),
        provider=lab.simulation.provider,
    )
    async with live_page(lab.client(), source) as page, served_page(page, Serving()):
        yield


def recorded(daemons: Sequence[Daemon], path: Path | None, *, virtual: bool) -> list[Daemon]:
    """The daemons of a lab, and one that records it; BadInput if the file cannot be made."""
    if path is None:
        return list(daemons)
    if path.exists() or not path.absolute().parent.is_dir():
        raise BadInput(f"--record {path}: must be a new file in a folder that is there")
    recorder = Recorder(
        lambda clock: RecordingWriter(path, name=NAME, start=clock.now()),
        flush_seconds=SELDOM if virtual else 1.0,
    )

    async def lead(client: Client) -> None:
        try:
            await recorder.lead(client)
        except (OSError, RecordingFullError) as problem:
            said = getattr(problem, "strerror", None) or str(problem)
            goes_on = "what came before is there, and the cluster goes on without it"
            notices().print(printable(f"--record {path}: {said}; {goes_on}"), style="yellow")

    # The last, so that the others have the same random numbers as without it.
    return [*daemons, lead]
