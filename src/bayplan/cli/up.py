"""`bayplan up`: a whole simulated cluster, on the wall clock or in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, TextIO

from cyclopts import Parameter
from rich.console import Console
from rich.live import Live

from bayplan.cli.apiserver import fastest_loop, listen_address
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.output import show
from bayplan.cli.simulated.mirror import Mirror
from bayplan.cli.simulated.placer import Placer
from bayplan.cli.simulated.serving import cloud_places, served
from bayplan.cli.simulated.tables import cluster_table, report_table
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity.kubeconfig import check_place
from bayplan.embedded.apiserver.store.database import StoreError
from bayplan.embedded.cloud.serving import CloudPlaces
from bayplan.embedded.simulation.clusterfile import ClusterSpec, read_cluster
from bayplan.embedded.simulation.live import LiveRun
from bayplan.embedded.simulation.report import Waiting, summarize
from bayplan.embedded.simulation.simulation import Simulation
from bayplan.embedded.simulation.virtual import VirtualRun
from bayplan.kube.configfiles import ConfigFileError
from bayplan.kube.durations import DurationError, parse_duration

REFRESH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class _Wish:
    """What the command line asked for."""

    spec: ClusterSpec
    seconds: float | None
    place: bool
    data: Path | None
    kubeconfig: Path | None
    listen: str
    log: Path | None
    cloud: CloudPlaces | None


def up(  # noqa: PLR0913 - one for each option of the command
    *,
    file: Annotated[Path, Parameter(("--file", "-f"))],
    for_: Annotated[str | None, Parameter("--for")] = None,
    virtual: bool = False,
    place: bool = False,
    data: Path | None = None,
    kubeconfig: Path | None = None,
    listen: str = "127.0.0.1:0",
    log: Path | None = None,
    seed: int | None = None,
    cloud_socket: Path | None = None,
    cloud_address: str | None = None,
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
    place
        Place pods by the model of what fits. Without it pods wait for a scheduler, or for you.
    data
        Keep the cluster's objects in this file; without it nothing is left behind.
    kubeconfig
        Where to write the kubeconfig while the cluster runs; without it, in a temporary folder.
    listen
        Address and port of the API server; port 0 takes a free one.
    log
        Write a line for every change to this file (only with --virtual).
    seed
        Use this seed instead of the file's; the same seed gives the same virtual run.
    cloud_socket
        Let other processes of this user buy nodes: serve the cloud on this unix socket, by Cluster
        Autoscaler's externalgrpc protocol.
    cloud_address
        The same over TLS, at this address and port; port 0 takes a free one.
    """
    cloud = cloud_places(cloud_socket, cloud_address)
    wish = _Wish(_spec(file, seed), _seconds(for_), place, data, kubeconfig, listen, log, cloud)
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


def _run_virtual(wish: _Wish) -> int:
    if wish.seconds is None:
        raise BadInput("--virtual needs --for: virtual time does not end by itself")
    if wish.cloud is not None:
        raise BadInput("--virtual serves nothing: no --cloud-socket and no --cloud-address")
    if wish.data is not None or wish.kubeconfig is not None:
        raise BadInput("--virtual neither keeps nor serves: no --data and no --kubeconfig")
    with _opened(wish.log) as out:
        asyncio.run(_virtual(wish, wish.seconds, out))
    return EXIT_OK


async def _virtual(wish: _Wish, seconds: float, out: TextIO | None) -> None:
    start = time.monotonic()
    async with VirtualRun(wish.spec, log=out) as run:
        await _prepare(run.simulation, Mirror(run.plane.store) if wish.place else None)
        await run.simulation.run(seconds)
        await run.simulation.refresh_leases()
        took = time.monotonic() - start
        show([report_table(summarize(run.simulation), took, run.log.lines, run.log.digest)])


async def _run_live(wish: _Wish) -> None:
    with _kubeconfig(wish.kubeconfig) as path:
        host, port = listen_address(wish.listen)
        config = ServerConfig(host=host, port=port, data=wish.data, kubeconfig=path)
        try:
            run = LiveRun(wish.spec, config)
        except (StoreError, OSError) as problem:
            raise BadInput(str(problem)) from problem
        _stop_on_signals(run.simulation)
        async with run:
            mirror = Mirror(run.server.store)
            await _prepare(run.simulation, mirror if wish.place else None)
            sys.stdout.write(f"serving {run.server.url}\nexport KUBECONFIG={path}\n")
            sys.stdout.flush()
            start = time.monotonic()
            cloud = served(run.simulation.provider, wish.cloud)
            async with cloud, _table(run.simulation, mirror):
                await run.simulation.run(wish.seconds)
            took = time.monotonic() - start
            if wish.seconds is not None:
                show([report_table(summarize(run.simulation), took, 0, "")])


async def _prepare(simulation: Simulation, mirror: Mirror | None) -> None:
    if mirror is not None:
        simulation.engine.add(Placer(simulation.stage, mirror))
    try:
        await simulation.prepare()
    except ConfigFileError as problem:
        raise BadInput(str(problem)) from problem


@contextlib.asynccontextmanager
async def _table(simulation: Simulation, mirror: Mirror) -> AsyncIterator[None]:
    """Show the table, where there is somebody to look at it."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        yield
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        task = asyncio.create_task(_refresh(live, simulation, mirror))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def _refresh(live: Live, simulation: Simulation, mirror: Mirror) -> None:
    def why(waiting: Waiting) -> str:
        if waiting.said:
            return waiting.said
        pod = mirror.pod(waiting.key)
        return "" if pod is None else mirror.snapshot.explain(pod, with_fixes=False).message

    while True:
        live.update(cluster_table(summarize(simulation), why), refresh=True)
        await asyncio.sleep(REFRESH_SECONDS)


def _stop_on_signals(simulation: Simulation) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, simulation.engine.stop)


@contextlib.contextmanager
def _kubeconfig(wanted: Path | None) -> Iterator[Path]:
    """Where the kubeconfig goes; it is of no use afterwards, so it is removed."""
    if wanted is not None:
        try:
            check_place(wanted)
        except OSError as problem:
            raise BadInput(f"--kubeconfig {problem}") from problem
        try:
            yield wanted
        finally:
            wanted.unlink(missing_ok=True)
        return
    with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
        yield Path(folder, "kubeconfig")


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
