"""`bayplan ui`: a web page of the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.clock import WallClock
from bayplan.base.garbage import RARELY
from bayplan.checks.cluster import LONG_AGO, latest_moment
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.access import ClusterAccess
from bayplan.cli.options.cluster import (
    Gates,
    Missing,
    Partial,
    Source,
    judged_as,
    load_objects,
    profile_from,
)
from bayplan.cli.options.live import ask, log_errors_only, request_seconds
from bayplan.cli.options.page import served_page, serving
from bayplan.cli.text.output import notices, printable
from bayplan.client.client import Client, ClientOptions
from bayplan.client.signals import run_until_signal
from bayplan.fit import Profile
from bayplan.kube.manifests import LoadResult
from bayplan.kube.times import read_time
from bayplan.recordings import Recording, RecordingError
from bayplan.ui.answers import PageAnswers, report_answers
from bayplan.ui.dump import dump_page
from bayplan.ui.live import LiveSource, live_page
from bayplan.ui.page import ClusterPage
from bayplan.ui.replay.backend import Replay
from bayplan.ui.server import PageServerOptions

MOST_PROBLEMS = 20
HERE = ClusterAccess()
StillPage = Callable[[], ClusterPage]
"""Creates a page, in the event loop in which it will run."""


def ui(  # noqa: PLR0913 - one for each option
    recording: Annotated[Path | None, Parameter(help="A recording of `bayplan record`.")] = None,
    /,
    *,
    filename: Source = (),
    access: ClusterAccess = HERE,
    request_timeout: str = "30s",
    listen: str = "127.0.0.1:0",
    token_file: Path | None = None,
    host_name: tuple[str, ...] = (),
    groups: Path | None = None,
    partial: Partial = False,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Serve a web page of the cluster: nodes as bays, volumes and limits, queues, pending pods and
    their causes, and what the autoscaler does next.

    It shows the cluster that kubectl uses, live; a dump (-f); or a recording, at any time of it.
    The page is read-only, and reads the cluster with your own permissions; kinds that may not be
    read are listed on the page. By default only this machine can open it; with another --listen
    address a token is needed.

    Exit codes: 0 it was served until interrupted, 2 bad input.

    Parameters
    ----------
    request_timeout
        How long the cluster may take to respond at first.
    listen
        Address and port; port 0 chooses a free one.
    token_file
        A file with the token for readers. By default a token is generated and printed if the
        address can be reached from other machines.
    host_name
        An additional host name of the page, such as that of a proxy; may be repeated.
    groups
        A file of node groups with their templates, bounds and prices, as for `bayplan plan`.
    """
    if sum((recording is not None, bool(filename), access != HERE)) > 1:
        raise BadInput(
            "give only one of a recording, a dump (-f), and a cluster (--context, --kubeconfig)"
        )
    rules = profile_from(feature_gates, missing_driver)
    answers = report_answers(rules, groups)
    how = serving(listen, token_file, host_name)
    gc.set_threshold(*RARELY)
    if recording is not None:
        with opened(recording) as found:
            replay = Replay(found, recording.name, profile=judged_as(rules, None), answers=answers)
            asyncio.run(run_until_signal(_serve_replay(replay, how)))
    elif filename:
        page = _of_dump(filename, rules, answers, partial=partial)
        asyncio.run(run_until_signal(_serve_still(page, how)))
    else:
        name = access.context or "the current context"
        source = LiveSource(name, profile=judged_as(rules, None), answers=answers)
        _serve_live(access, source, how, request_seconds(request_timeout))
    return EXIT_OK


def _of_dump(
    filename: Sequence[str], rules: Profile, answers: PageAnswers, *, partial: bool
) -> StillPage:
    loaded = load_objects(filename, "ui", partial=partial, events=True)
    notes = [f"left out: {printable(str(one))}" for one in loaded.problems[:MOST_PROBLEMS]]
    return lambda: dump_page(
        [*loaded.objects, *loaded.events],
        ", ".join(filename),
        WallClock(),
        profile=judged_as(rules, None),
        answers=answers,
        notes=notes,
        moment=_moment(loaded),
    )


def _moment(loaded: LoadResult) -> datetime | None:
    """Return when a dump was taken: as recorded, or its latest timestamp; None if unknown."""
    latest = read_time(loaded.taken_at) or latest_moment([*loaded.objects, *loaded.events])
    return None if latest == LONG_AGO else latest


async def _serve_still(make: StillPage, how: PageServerOptions) -> None:
    page = make()
    async with served_page(page, how), page.running():
        await asyncio.Event().wait()


async def _serve_replay(replay: Replay, how: PageServerOptions) -> None:
    try:
        async with served_page(replay, how):
            await asyncio.Event().wait()
    finally:
        replay.close()


def _serve_live(
    access: ClusterAccess, source: LiveSource, how: PageServerOptions, seconds: float
) -> None:
    log_errors_only()

    async def show(client: Client) -> None:
        async with live_page(client, source) as page, served_page(page, how):
            await asyncio.Event().wait()

    ask(access, lambda client: run_until_signal(show(client)), seconds, ClientOptions())


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Recording]:
    """Open a recording; BadInput if it cannot be opened or is damaged."""
    try:
        with _open_recording(path) as found:
            if found.truncated_bytes:
                lost = f"the last {found.truncated_bytes} bytes cannot be read"
                notices().print(printable(f"{path}: {lost}; the rest is shown"), style="yellow")
            yield found
    except RecordingError as error:
        raise BadInput(printable(str(error))) from None


def _open_recording(path: Path) -> Recording:
    try:
        return Recording(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None
