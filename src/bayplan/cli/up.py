"""`bayplan up`: a whole simulated cluster, on the wall clock or in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TextIO, TypeVar

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live

from bayplan.cli.apiserver import WhoMay, fastest_loop, kubeconfig_place, listen_address
from bayplan.cli.cluster import Gates, Missing, profile_from
from bayplan.cli.errors import EXIT_OK, BadInput, Unwritable
from bayplan.cli.output import printable, show
from bayplan.cli.simulated.screen import cluster_table
from bayplan.cli.simulated.serving import cloud_places, served
from bayplan.cli.simulated.tables import report_table
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity.tokens import TokenFileError
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.cloud.serving import CloudPlaces
from bayplan.embedded.simulation.clusterfile import ClusterSpec, read_cluster
from bayplan.embedded.simulation.report import Waiting, summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.fit import Snapshot
from bayplan.kube.configfiles import ConfigFileError
from bayplan.kube.durations import DurationError, parse_duration
from bayplan.kube.pods import Pod
from bayplan.lab import Lab, LiveLab, VirtualLab, run_virtually
from bayplan.lab.crew import Crew, CrewError, Member, members, muster
from bayplan.observe import follow

REFRESH_SECONDS = 1.0
L = TypeVar("L", bound=Lab)


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asked for."""

    spec: ClusterSpec
    seconds: float | None
    crew: Crew
    data: Path | None
    kubeconfig: Path | None
    listen: str
    log: Path | None
    cloud: CloudPlaces | None
    who: WhoMay


def up(  # noqa: PLR0913 - one for each option of the command
    *,
    file: Annotated[Path, Parameter(("--filename", "-f"))],
    for_: Annotated[str | None, Parameter("--for")] = None,
    virtual: bool = False,
    with_: Annotated[str, Parameter("--with")] = "",
    data: Path | None = None,
    kubeconfig: Path | None = None,
    listen: str = "127.0.0.1:0",
    log: Path | None = None,
    seed: int | None = None,
    cloud_socket: Path | None = None,
    cloud_address: str | None = None,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
    who: WhoMay | None = None,
) -> int:
    """Run a simulated cluster: nodes, CSI drivers, workloads and a cloud around an API server.

    Parameters
    ----------
    file
        The cluster file.
    for_
        End after this long, such as 90s or 2h, and report; without it, run until interrupted.
    virtual
        Run in virtual time, as fast as the machine can; needs --for. Nothing listens meanwhile.
    with_
        Which of Bayplan's daemons are at work, with commas: scheduler places pods, autoscaler buys
        and gives back nodes, queues has the kinds of queues and gates pods that wait for theirs,
        node-agent publishes attach limits. Without them pods wait for another scheduler, or for
        you, and groups stay as they are.
    data
        Keep the cluster's objects in this file; without it nothing is left behind.
    kubeconfig
        Where to write the kubeconfig while the cluster runs; without it, in a temporary folder.
    listen
        Address and port of the API server; port 0 takes a free one.
    log
        Write what happened when, a line for every change, to this file (only with --virtual).
    seed
        Use this seed instead of the file's; the same seed gives the same virtual run.
    cloud_socket
        Let other processes of this user buy nodes: serve the cloud on this unix socket, by Cluster
        Autoscaler's externalgrpc protocol.
    cloud_address
        The same over TLS, at this address and port; port 0 takes a free one.
    """
    cloud = cloud_places(cloud_socket, cloud_address)
    spec, seconds = _spec(file, seed), _seconds(for_)
    crew = Crew(_members(with_), profile_from(feature_gates, missing_driver))
    wish = _Wish(spec, seconds, crew, data, kubeconfig, listen, log, cloud, who or WhoMay())
    if virtual:
        return _run_virtual(wish)
    if log is not None:
        raise BadInput("--log: only a virtual run has a log")
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(_run_live(wish))
    return EXIT_OK


def _spec(file: Path, seed: int | None) -> ClusterSpec:
    try:
        spec = read_cluster(file)
    except ConfigFileError as problem:
        raise BadInput(str(problem)) from problem
    return spec if seed is None else replace(spec, seed=seed)


def _seconds(text: str | None) -> float | None:
    try:
        return None if text is None else parse_duration(text)
    except DurationError as problem:
        raise BadInput(f"--for: {problem}") from problem


def _members(written: str) -> frozenset[Member]:
    try:
        return members(written) if written else frozenset()
    except CrewError as problem:
        raise BadInput(f"--with: {printable(str(problem))}") from problem


def _run_virtual(wish: _Wish) -> int:
    if wish.seconds is None:
        raise BadInput("--virtual needs --for: virtual time does not end by itself")
    if wish.cloud is not None:
        raise BadInput("--virtual serves nothing: no --cloud-socket and no --cloud-address")
    if wish.kubeconfig is not None:
        raise BadInput("--virtual serves nobody: no --kubeconfig")
    if wish.who != WhoMay():
        raise BadInput("--virtual serves nobody: no --tokens and no --authorization")
    with _opened(wish.log) as out:
        run_virtually(_virtual(wish, wish.seconds, out))
    return EXIT_OK


async def _virtual(wish: _Wish, seconds: float, out: TextIO | None) -> None:
    start = time.monotonic()
    with _input_checked():
        on = muster(wish.crew, wish.spec, lambda: lab.simulation.provider)
        lab = _made(
            lambda: VirtualLab(on.spec, on.daemons, data=wish.data, log=out, webhooks=on.webhooks)
        )
        async with lab:
            await lab.run(seconds)
            await lab.simulation.refresh_leases()
            took = time.monotonic() - start
            show([report_table(summarize(lab.simulation), took, lab.log.lines, lab.log.digest)])


async def _run_live(wish: _Wish) -> None:
    with kubeconfig_place(wish.kubeconfig) as path, _input_checked():
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
        on = muster(wish.crew, wish.spec, lambda: lab.simulation.provider, live=True)
        lab = _made(lambda: LiveLab(on.spec, config, on.daemons))
        _stop_on_signals(lab)
        async with lab:
            sys.stdout.write(f"serving {lab.server.url}\nexport KUBECONFIG={path}\n")
            sys.stdout.flush()
            start = time.monotonic()
            cloud = served(lab.simulation.provider, wish.cloud)
            async with cloud, _table(lab):
                await lab.run(wish.seconds)
            took = time.monotonic() - start
            if wish.seconds is not None:
                show([report_table(summarize(lab.simulation), took, 0, "")])


def _made(make: Callable[[], L]) -> L:
    """A lab, if its data file and its address can be used."""
    try:
        return make()
    except (StoreError, TokenFileError, OSError) as problem:
        raise BadInput(str(problem)) from problem


@contextlib.contextmanager
def _input_checked() -> Iterator[None]:
    """Say what is wrong with the cluster file or the data file, where that comes out only later."""
    try:
        yield
    except ConfigFileError as problem:
        raise BadInput(str(problem)) from problem
    except StoreError as problem:
        raise Unwritable(str(problem)) from problem


@contextlib.asynccontextmanager
async def _table(lab: Lab) -> AsyncIterator[None]:
    """Show the table, where there is somebody to look at it."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        yield
        return
    screen = Live(console=console, auto_refresh=False, transient=True)
    async with follow(lab.client()) as live:
        with screen:
            task = asyncio.create_task(_refresh(screen, lab.simulation, live.snapshot))
            try:
                yield
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)


async def _refresh(screen: Live, simulation: Simulation, snapshot: Snapshot) -> None:
    def why(waiting: Waiting) -> str:
        if waiting.said:
            return waiting.said
        pod = snapshot.get(Pod, f"{waiting.key.namespace}/{waiting.key.name}")
        return "" if pod is None else snapshot.explain(pod, with_fixes=False).message

    while True:
        screen.update(cluster_table(summarize(simulation), why), refresh=True)
        await asyncio.sleep(REFRESH_SECONDS)


def _stop_on_signals(lab: Lab) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, lab.stop)


@contextlib.contextmanager
def _opened(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    try:
        with path.open("w") as out:
            yield out
    except OSError as problem:
        raise BadInput(f"--log {path}: {problem.strerror}") from problem
