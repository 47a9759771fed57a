"""A simulated cluster on the wall's clock: served, watched on a screen, ended by a signal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from rich.console import Console
from rich.live import Live

from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.apiserver import WhoMay, kubeconfig_place
from bayplan.cli.daemon import listen_address
from bayplan.cli.errors import BadInput, Unwritable
from bayplan.cli.output import show
from bayplan.cli.simulated.doings import Watching
from bayplan.cli.simulated.screen import cluster_table
from bayplan.cli.simulated.serving import served
from bayplan.cli.simulated.tables import report_table
from bayplan.cli.simulated.watching import lab_page, recorded
from bayplan.client.signals import ending_signals
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity.tokens import TokenFileError
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.cloud.serving import CloudPlaces
from bayplan.embedded.simulation.clusterfile import ClusterSpec
from bayplan.embedded.simulation.report import summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.lab import Lab, LiveLab
from bayplan.lab.crew import Aboard, Crew, muster
from bayplan.observe import follow

REFRESH_SECONDS = 1.0
L = TypeVar("L", bound=Lab)


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to run, and where."""

    spec: ClusterSpec
    crew: Crew
    seconds: float | None = None
    """None is until somebody ends it."""
    data: Path | None = None
    kubeconfig: Path | None = None
    listen: str = "127.0.0.1:0"
    cloud: CloudPlaces | None = None
    who: WhoMay = field(default_factory=WhoMay)
    hints: Sequence[str] = ()
    """Lines to print once it is served."""
    ui: bool = False
    """Whether the page of `bayplan ui` is served with it."""
    record: Path | None = None
    """Where to keep all that happens."""


async def live(wish: Wish) -> None:
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
        lab = made(lambda: LiveLab(aboard.spec, config, daemons))
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


def made(make: Callable[[], L]) -> L:
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
            watching = Watching(aboard, lab.simulation, live.snapshot)
            task = asyncio.create_task(_refresh(screen, lab.simulation, watching))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def _refresh(screen: Live, simulation: Simulation, watching: Watching) -> None:
    while True:
        shown = cluster_table(summarize(simulation), watching.why, watching.doings())
        screen.update(shown, refresh=True)
        await asyncio.sleep(REFRESH_SECONDS)


def _stop_on_signals(lab: Lab) -> None:
    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, lab.stop)
