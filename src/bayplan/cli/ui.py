"""`bayplan ui`: a page of the cluster, served to a browser."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import ipaddress
import logging
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.clock import WallClock
from bayplan.base.durations import DurationError, parse_duration
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
from bayplan.cli.options.daemon import listen_address
from bayplan.cli.options.live import ask
from bayplan.cli.text.output import notices, printable
from bayplan.client.client import Client, Tuning
from bayplan.client.serving.binding import ListenError, bind
from bayplan.client.signals import until_signalled
from bayplan.fit import Profile
from bayplan.kube.loading import Loaded
from bayplan.kube.times import read_time
from bayplan.recordings import Recording, RecordingError
from bayplan.ui.answers import Answers, report_answers
from bayplan.ui.backend import Backend
from bayplan.ui.live import LiveSource, live_page
from bayplan.ui.page import Page
from bayplan.ui.replay.backend import Replay
from bayplan.ui.serving import Guard, Serving, new_token, serve
from bayplan.ui.still import still_page

SHORTEST_TOKEN = 16
MOST_PROBLEMS = 20
HERE = ClusterAccess()
StillPage = Callable[[], Page]
"""Makes a page, in the event loop that it will live in."""


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
    """Serve a page of the cluster: nodes as bays, volumes against limits, queues, who waits and
    why, what the autoscaler does next.

    Of the cluster that kubectl would talk to, as it changes; of a dump (-f); or of a recording, at
    any moment of it. It only shows: there is no way to change anything through it, and a cluster is
    read with the reader's own permissions; what may not be read is named on the page. It is for
    this machine unless --listen says otherwise, and then only with a token.

    Exit codes: 0 it was served until interrupted, 2 bad input.

    Parameters
    ----------
    request_timeout
        How long the cluster may take to answer at first.
    listen
        Address and port to listen on; port 0 takes a free one.
    token_file
        A file with the token that a reader needs. Without it, one is made up and printed where one
        is needed: when others than this machine may ask.
    host_name
        A further name under which the page is served, such as that of a proxy; may be repeated.
    groups
        Node groups with their templates, bounds and prices, as `bayplan plan` has them.
    """
    if sum((recording is not None, bool(filename), access != HERE)) > 1:
        raise BadInput("give a recording, or a dump with -f, or a cluster with --context, not two")
    rules = profile_from(feature_gates, missing_driver)
    told = report_answers(rules, groups)
    how = serving(listen, token_file, host_name)
    gc.set_threshold(*RARELY)
    if recording is not None:
        with opened(recording) as found:
            replay = Replay(found, recording.name, profile=judged_as(rules, None), answers=told)
            asyncio.run(until_signalled(_serve_replay(replay, how)))
    elif filename:
        page = _of_dump(filename, rules, told, partial=partial)
        asyncio.run(until_signalled(_serve_still(page, how)))
    else:
        name = access.context or "the current context"
        source = LiveSource(name, profile=judged_as(rules, None), answers=told)
        _serve_live(access, source, how, patience(request_timeout))
    return EXIT_OK


def _of_dump(filename: Sequence[str], rules: Profile, told: Answers, *, partial: bool) -> StillPage:
    loaded = load_objects(filename, "ui", partial=partial, events=True)
    notes = [f"left out: {printable(str(one))}" for one in loaded.problems[:MOST_PROBLEMS]]
    return lambda: still_page(
        [*loaded.objects, *loaded.events],
        ", ".join(filename),
        WallClock(),
        profile=judged_as(rules, None),
        answers=told,
        notes=notes,
        moment=_moment(loaded),
    )


def _moment(loaded: Loaded) -> datetime | None:
    """When a dump was taken: as it says, or the latest moment in it; None if it names none."""
    latest = read_time(loaded.taken_at) or latest_moment([*loaded.objects, *loaded.events])
    return None if latest == LONG_AGO else latest


async def _serve_still(make: StillPage, how: Serving) -> None:
    page = make()
    async with served_page(page, how), page.running():
        await asyncio.Event().wait()


async def _serve_replay(replay: Replay, how: Serving) -> None:
    try:
        async with served_page(replay, how):
            await asyncio.Event().wait()
    finally:
        replay.close()


def quiet() -> None:
    """What cannot be read is told once, and not by every try."""
    logging.getLogger("bayplan").setLevel(logging.ERROR)


def _serve_live(access: ClusterAccess, source: LiveSource, how: Serving, seconds: float) -> None:
    quiet()

    async def show(client: Client) -> None:
        async with live_page(client, source) as page, served_page(page, how):
            await asyncio.Event().wait()

    ask(access, lambda client: until_signalled(show(client)), seconds, Tuning())


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Recording]:
    """A recording; BadInput if it cannot be opened, or turns out to be damaged."""
    try:
        with _open_recording(path) as found:
            if found.cut:
                told = f"{path}: the last {found.cut} bytes cannot be read; the rest is shown"
                notices().print(printable(told), style="yellow")
            yield found
    except RecordingError as error:
        raise BadInput(printable(str(error))) from None


def _open_recording(path: Path) -> Recording:
    try:
        return Recording(path)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror or error}") from None


def patience(written: str) -> float:
    """Seconds that an answer may take."""
    try:
        return parse_duration(written) or 0.1
    except DurationError as error:
        raise BadInput(f"--request-timeout: {error}") from None


@contextlib.asynccontextmanager
async def served_page(backend: Backend, how: Serving) -> AsyncIterator[str]:
    """Serve a page, and say where; BadInput if its address cannot be bound."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            served = bind(serve(backend, how), f"--listen {how.host}:{how.port}")
            url = await stack.enter_async_context(served)
        except ListenError as error:
            raise BadInput(error.short) from error
        shown = f"{url}?token={how.guard.token}" if how.guard.token else url
        sys.stdout.write(f"page: {shown}\n")
        sys.stdout.flush()
        yield url


def serving(listen: str, token_file: Path | None, names: Sequence[str] = ()) -> Serving:
    """How a page is served; with a token wherever others than this machine may ask."""
    host, port = listen_address(listen)
    token = _token(token_file) if token_file is not None else ""
    if not token and not _is_this_machine(host):
        token = new_token()
    return Serving(host, port, Guard(token, frozenset(name.lower() for name in names)))


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise BadInput(f"--token-file {path}: {reason}") from None
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise BadInput(
            f"--token-file {path}: a token has at least {SHORTEST_TOKEN} characters and no space"
        )
    return token
