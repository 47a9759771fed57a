"""`bayplan up`: a simulated cluster, in real or virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, TextIO

from cyclopts import Parameter

from bayplan.base.configfiles import ConfigFileError
from bayplan.base.durations import DurationError, parse_duration
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.cluster import Gates, Missing, profile_from
from bayplan.cli.options.flags import Switch
from bayplan.cli.options.server import AuthOptions
from bayplan.cli.simulated.cluster import (
    ClusterRequest,
    cloud_places,
    input_checked,
    open_lab,
    recorded,
    run_live,
)
from bayplan.cli.simulated.tables import report_table
from bayplan.cli.text.output import printable, show
from bayplan.client.daemon import fastest_loop
from bayplan.embedded.simulation.clusterfile import ClusterSpec, read_cluster
from bayplan.embedded.simulation.report import summarize
from bayplan.lab import VirtualLab, run_virtually
from bayplan.lab.daemons import (
    DaemonName,
    LabDaemons,
    UnknownDaemonError,
    parse_daemon_names,
    prepare_daemons,
)


def up(  # noqa: PLR0913 - one for each option of the command
    *,
    file: Annotated[Path, Parameter(("--filename", "-f"))],
    for_: Annotated[str | None, Parameter("--for")] = None,
    virtual: Switch = False,
    with_: Annotated[str, Parameter("--with")] = "",
    data: Path | None = None,
    kubeconfig: Path | None = None,
    listen: str = "127.0.0.1:0",
    log: Path | None = None,
    seed: int | None = None,
    cloud_socket: Path | None = None,
    cloud_address: str | None = None,
    ui: Switch = False,
    record: Path | None = None,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
    who: AuthOptions | None = None,
) -> int:
    """Run a simulated cluster: nodes, CSI drivers, workloads and a cloud around an API server.

    Parameters
    ----------
    file
        The cluster file.
    for_
        Stop after this time, such as 90s or 2h, and report; by default run until interrupted.
    virtual
        Run in virtual time, as fast as possible; needs --for. No address is served meanwhile.
    with_
        The daemons to run, separated by commas: scheduler schedules pods, autoscaler scales node
        groups, queues installs the kinds of queues and gates pods of queues, node-agent publishes
        attach limits. Without them pods stay pending until you run a scheduler, and node groups
        keep their sizes.
    data
        The file to store the cluster's objects in; by default nothing is left behind.
    kubeconfig
        The file for the kubeconfig while the cluster runs; by default a temporary one.
    listen
        Address and port of the API server; port 0 chooses a free one.
    log
        The file to log every change to, with its virtual time; needs --virtual.
    seed
        The random seed, instead of the file's; the same seed gives the same virtual run.
    cloud_socket
        Serve the cloud on this unix socket, with Cluster Autoscaler's externalgrpc protocol.
    cloud_address
        Serve the cloud over TLS at this address and port; port 0 chooses a free one.
    ui
        Also serve the page of `bayplan ui`, on this machine, and print its address.
    record
        Record all changes to this file, for replay with `bayplan ui`; also with --virtual.
    """
    cloud = cloud_places(cloud_socket, cloud_address)
    spec, seconds = _spec(file, seed), _seconds(for_)
    crew = LabDaemons(_members(with_), profile_from(feature_gates, missing_driver))
    wish = ClusterRequest(
        spec, crew, seconds, data, kubeconfig, listen, cloud, who or AuthOptions()
    )
    wish = replace(wish, ui=ui, record=record)
    if virtual:
        return _run_virtual(wish, log)
    if log is not None:
        raise BadInput("--log: needs --virtual")
    with asyncio.Runner(loop_factory=fastest_loop()) as runner:
        runner.run(run_live(wish))
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


def _members(written: str) -> frozenset[DaemonName]:
    try:
        return parse_daemon_names(written) if written else frozenset()
    except UnknownDaemonError as problem:
        raise BadInput(f"--with: {printable(str(problem))}") from problem


def _run_virtual(wish: ClusterRequest, log: Path | None) -> int:
    if wish.seconds is None:
        raise BadInput("--virtual: needs --for, since virtual time does not end by itself")
    if wish.cloud is not None:
        raise BadInput("--virtual: not with --cloud-socket or --cloud-address, nothing is served")
    if wish.kubeconfig is not None or wish.ui:
        raise BadInput("--virtual: not with --kubeconfig or --ui, nothing is served")
    if wish.who != AuthOptions():
        raise BadInput("--virtual: not with --tokens or --authorization, nothing is served")
    with _opened(log) as out:
        run_virtually(_virtual(wish, wish.seconds, out))
    return EXIT_OK


async def _virtual(wish: ClusterRequest, seconds: float, out: TextIO | None) -> None:
    start = time.monotonic()
    with input_checked():
        on = prepare_daemons(wish.crew, wish.spec, lambda: lab.simulation.provider)
        daemons = recorded(on.daemons, wish.record, virtual=True)
        lab = open_lab(
            lambda: VirtualLab(on.spec, daemons, data=wish.data, log=out, webhooks=on.webhooks)
        )
        async with lab:
            await lab.run(seconds)
            await lab.simulation.refresh_leases()
            took = time.monotonic() - start
            show([report_table(summarize(lab.simulation), took, lab.log.lines, lab.log.digest)])


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
