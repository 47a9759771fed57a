"""A simulated cluster on the wall's clock: served, watched on a screen, ended by a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.live import Live

from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.apiserver import AuthOptions, kubeconfig_place
from bayplan.cli.errors import BadInput, Unwritable
from bayplan.cli.options.cluster import judged_as
from bayplan.cli.options.daemon import listen_address
from bayplan.cli.simulated.activity import ActivityView
from bayplan.cli.simulated.screen import cluster_table
from bayplan.cli.simulated.tables import report_table
from bayplan.cli.text.output import notices, printable, show
from bayplan.client import Client
from bayplan.client.signals import ending_signals
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import TokenFileError
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.cloud.serving import CloudPlaces, serve_cloud
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.report import summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Profile
from bayplan.lab import Daemon, Lab, LiveLab
from bayplan.lab.crew import Aboard, Crew, muster
from bayplan.nodegroups import Provider, UnavailableError
from bayplan.nodegroups.externalgrpc.config import VARIABLE
from bayplan.observe import follow
from bayplan.observe.recorder import Recorder
from bayplan.recordings import RecordingFullError, RecordingWriter

REFRESH_SECONDS = 1.0
L = TypeVar("L", bound=Lab)


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """What is to run, and where."""

    spec: ClusterSpec
    crew: Crew
    seconds: float | None = None
    """None is until somebody ends it."""
    data: Path | None = None
    kubeconfig: Path | None = None
    listen: str = "127.0.0.1:0"
    cloud: CloudPlaces | None = None
    who: AuthOptions = field(default_factory=AuthOptions)
    hints: Sequence[str] = ()
    """Lines to print once it is served."""
    ui: bool = False
    """Whether the page of `bayplan ui` is served with it."""
    record: Path | None = None
    """Where to keep all that happens."""


async def run_live(wish: ClusterRequest) -> None:
    """Run it until its time is over, or until SIGINT or SIGTERM."""
    with kubeconfig_place(wish.kubeconfig) as path, input_checked():
        host, port = listen_address(wish.listen)
        config = ServerConfig(
            host=host,
            port=port,
            data=wish.data,
            kubeconfig=path,
            allow_privileged=True,
            tokens=wish.who.tokens,
            authorization=wish.who.authorization,
        )
        aboard = muster(wish.crew, wish.spec, lambda: lab.simulation.provider, live=True)
        daemons = recorded(aboard.daemons, wish.record, virtual=False)
        lab = open_lab(lambda: LiveLab(aboard.spec, config, daemons))
        _stop_on_signals(lab)
        async with lab:
            lines = [f"serving {lab.server.url}", f"export KUBECONFIG={path}", *wish.hints]
            sys.stdout.writelines(f"{line}\n" for line in lines)
            sys.stdout.flush()
            start = time.monotonic()
            cloud = served(lab.simulation.provider, wish.cloud)
            page = lab_page(lab, wish.crew.profile, wanted=wish.ui)
            async with cloud, page, _table(lab, aboard):
                await lab.run(wish.seconds)
            took = time.monotonic() - start
            if wish.seconds is not None:
                show([report_table(summarize(lab.simulation), took, 0, "")])


def open_lab(make: Callable[[], L]) -> L:
    """A lab, if its data file and its address can be used."""
    try:
        return make()
    except (StoreError, TokenFileError, OSError) as problem:
        raise BadInput(str(problem)) from problem


@contextlib.contextmanager
def input_checked() -> Iterator[None]:
    """Say what is wrong with the cluster file or the data file, where that comes out only later."""
    try:
        yield
    except ConfigFileError as problem:
        raise BadInput(str(problem)) from problem
    except StoreError as problem:
        raise Unwritable(str(problem)) from problem


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep daemons' log lines, which are for their own processes, off a screen."""
    logger, nowhere = logging.getLogger("bayplan"), logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        yield
    finally:
        logger.removeHandler(nowhere)


@contextlib.asynccontextmanager
async def _table(lab: Lab, aboard: Aboard) -> AsyncIterator[None]:
    """Show the table, where there is somebody to look at it."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        yield
        return
    screen = Live(console=console, auto_refresh=False, transient=True)
    async with follow(lab.client()) as live:
        with quiet(), screen:
            watching = ActivityView(aboard, lab.simulation, live.snapshot)
            task = asyncio.create_task(_refresh(screen, lab.simulation, watching))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def _refresh(screen: Live, simulation: Simulation, watching: ActivityView) -> None:
    while True:
        shown = cluster_table(summarize(simulation), watching.why, watching.doings())
        screen.update(shown, refresh=True)
        await asyncio.sleep(REFRESH_SECONDS)


def _stop_on_signals(lab: Lab) -> None:
    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, lab.stop)


def cloud_places(socket: Path | None, address: str | None) -> CloudPlaces | None:
    """Where the command line wants the cloud; None if it does not."""
    if socket is None and address is None:
        return None
    return CloudPlaces(
        socket, None if address is None else listen_address(address, "--cloud-address")
    )


@asynccontextmanager
async def served(provider: Provider, places: CloudPlaces | None) -> AsyncIterator[None]:
    """Serve the cloud if it is wanted, and say where."""
    if places is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="bayplan-cloud-") as folder:
        try:
            async with serve_cloud(provider, places, Path(folder), datetime.now(UTC)) as cloud:
                sys.stdout.write(f"serving the cloud at {' and '.join(cloud.addresses)}\n")
                sys.stdout.write(f"export {VARIABLE}={cloud.config}\n")
                sys.stdout.flush()
                yield
        except UnavailableError as problem:
            raise BadInput(str(problem)) from problem


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
    from bayplan.ui.answers import report_answers  # noqa: PLC0415
    from bayplan.ui.live import LiveSource, live_page  # noqa: PLC0415
    from bayplan.ui.serving import Serving  # noqa: PLC0415

    source = LiveSource(
        NAME,
        kind="simulation",
        profile=judged_as(rules, None),
        answers=report_answers(rules),
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
