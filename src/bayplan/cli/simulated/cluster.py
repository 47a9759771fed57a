"""Runs a simulated cluster in real time: its API server, its screen, and signals."""

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
from bayplan.cli.errors import BadInput, Unwritable
from bayplan.cli.options.cluster import judged_as
from bayplan.cli.options.daemon import listen_address
from bayplan.cli.options.server import AuthOptions, kubeconfig_place
from bayplan.cli.simulated.activity import ActivityView
from bayplan.cli.simulated.screen import cluster_table
from bayplan.cli.simulated.tables import report_table
from bayplan.cli.text.output import notices, printable, show
from bayplan.client import Client
from bayplan.client.signals import termination_signals
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import TokenFileError
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.cloud.server import CloudListeners, serve_cloud
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.report import summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Profile
from bayplan.lab import Daemon, Lab, LiveLab
from bayplan.lab.daemons import LabDaemons, PreparedDaemons, prepare_daemons
from bayplan.nodegroups import Provider, ProviderUnavailableError
from bayplan.nodegroups.externalgrpc.config import VARIABLE
from bayplan.observe import follow
from bayplan.observe.recorder import ClusterRecorder
from bayplan.recordings import RecordingFullError, RecordingWriter

REFRESH_SECONDS = 1.0
L = TypeVar("L", bound=Lab)


@dataclass(frozen=True, slots=True)
class ClusterRequest:
    """What to run, and where."""

    spec: ClusterSpec
    crew: LabDaemons
    seconds: float | None = None
    """How long to run; None until interrupted."""
    data: Path | None = None
    kubeconfig: Path | None = None
    listen: str = "127.0.0.1:0"
    cloud: CloudListeners | None = None
    who: AuthOptions = field(default_factory=AuthOptions)
    hints: Sequence[str] = ()
    """Lines to print when it is served."""
    ui: bool = False
    """Whether to serve the page of `bayplan ui`."""
    record: Path | None = None
    """The file to record all changes to."""


async def run_live(wish: ClusterRequest) -> None:
    """Run a cluster until its time is over, or until SIGINT or SIGTERM."""
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
        aboard = prepare_daemons(wish.crew, wish.spec, lambda: lab.simulation.provider, live=True)
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
    """Create a lab; BadInput if its data file or address cannot be used."""
    try:
        return make()
    except (StoreError, TokenFileError, OSError) as problem:
        raise BadInput(str(problem)) from problem


@contextlib.contextmanager
def input_checked() -> Iterator[None]:
    """Convert errors of the cluster file and the data file that are found while running."""
    try:
        yield
    except ConfigFileError as problem:
        raise BadInput(str(problem)) from problem
    except StoreError as problem:
        raise Unwritable(str(problem)) from problem


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the daemons' log lines off the screen."""
    logger, nowhere = logging.getLogger("bayplan"), logging.NullHandler()
    logger.addHandler(nowhere)
    try:
        yield
    finally:
        logger.removeHandler(nowhere)


@contextlib.asynccontextmanager
async def _table(lab: Lab, aboard: PreparedDaemons) -> AsyncIterator[None]:
    """Show the live table, if the output is a terminal."""
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
        shown = cluster_table(summarize(simulation), watching.reason, watching.activity())
        screen.update(shown, refresh=True)
        await asyncio.sleep(REFRESH_SECONDS)


def _stop_on_signals(lab: Lab) -> None:
    loop = asyncio.get_running_loop()
    for number in termination_signals():
        loop.add_signal_handler(number, lab.stop)


def cloud_places(socket: Path | None, address: str | None) -> CloudListeners | None:
    """Return where to serve the cloud; None if it is not served."""
    if socket is None and address is None:
        return None
    return CloudListeners(
        socket, None if address is None else listen_address(address, "--cloud-address")
    )


@asynccontextmanager
async def served(provider: Provider, places: CloudListeners | None) -> AsyncIterator[None]:
    """Serve the cloud if wanted, and print its address."""
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
        except ProviderUnavailableError as problem:
            raise BadInput(str(problem)) from problem


NAME = "simulated cluster"
SELDOM = 600.0
"""The flush interval of a recording in virtual seconds; it is not read during the run."""


@asynccontextmanager
async def lab_page(lab: Lab, rules: Profile, *, wanted: bool = True) -> AsyncIterator[None]:
    """Serve the page of a cluster in this process, with its cloud, and print its address."""
    if not wanted:
        yield
        return
    # Slow to import, and seldom used.
    from bayplan.cli.options.page import served_page  # noqa: PLC0415
    from bayplan.ui.answers import report_answers  # noqa: PLC0415
    from bayplan.ui.live import LiveSource, live_page  # noqa: PLC0415
    from bayplan.ui.server import PageServerOptions  # noqa: PLC0415

    source = LiveSource(
        NAME,
        kind="simulation",
        profile=judged_as(rules, None),
        answers=report_answers(rules),
        provider=lab.simulation.provider,
    )
    async with live_page(lab.client(), source) as page, served_page(page, PageServerOptions()):
        yield


def recorded(daemons: Sequence[Daemon], path: Path | None, *, virtual: bool) -> list[Daemon]:
    """Return the daemons of a lab with a recorder; BadInput if the file cannot be created."""
    if path is None:
        return list(daemons)
    if path.exists() or not path.absolute().parent.is_dir():
        raise BadInput(f"--record {path}: must be a new file in an existing folder")
    recorder = ClusterRecorder(
        lambda clock: RecordingWriter(path, name=NAME, start=clock.now()),
        flush_seconds=SELDOM if virtual else 1.0,
    )

    async def lead(client: Client) -> None:
        try:
            await recorder.lead(client)
        except (OSError, RecordingFullError) as problem:
            reason = getattr(problem, "strerror", None) or str(problem)
            text = f"--record {path}: {reason}; recording stopped, the cluster keeps running"
            notices().print(printable(text), style="yellow")

    # Last, so that the others get the same random numbers as without it.
    return [*daemons, lead]
