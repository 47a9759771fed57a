"""`bayplan up`: a whole simulated cluster, on the wall clock or in virtual time."""

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
from bayplan.cli.apiserver import AuthOptions
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.options.cluster import Gates, Missing, profile_from
from bayplan.cli.options.flags import Switch
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
from bayplan.lab.crew import Crew, CrewError, Member, members, muster


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
    ui
        Serve the page of `bayplan ui` while the cluster runs, on this machine, and say where.
    record
        Keep all that happens in this file, for `bayplan ui` to play; also with --virtual.
    """
    cloud = cloud_places(cloud_socket, cloud_address)
    spec, seconds = _spec(file, seed), _seconds(for_)
    crew = Crew(_members(with_), profile_from(feature_gates, missing_driver))
    wish = ClusterRequest(
        spec, crew, seconds, data, kubeconfig, listen, cloud, who or AuthOptions()
    )
    wish = replace(wish, ui=ui, record=record)
    if virtual:
        return _run_virtual(wish, log)
    if log is not None:
        raise BadInput("--log: only a virtual run has a log")
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


def _members(written: str) -> frozenset[Member]:
    try:
        return members(written) if written else frozenset()
    except CrewError as problem:
        raise BadInput(f"--with: {printable(str(problem))}") from problem


def _run_virtual(wish: ClusterRequest, log: Path | None) -> int:
    if wish.seconds is None:
        raise BadInput("--virtual needs --for: virtual time does not end by itself")
    if wish.cloud is not None:
        raise BadInput("--virtual serves nothing: no --cloud-socket and no --cloud-address")
    if wish.kubeconfig is not None or wish.ui:
        raise BadInput("--virtual serves nobody: no --kubeconfig and no --ui")
    if wish.who != AuthOptions():
        raise BadInput("--virtual serves nobody: no --tokens and no --authorization")
    with _opened(log) as out:
        run_virtually(_virtual(wish, wish.seconds, out))
    return EXIT_OK


async def _virtual(wish: ClusterRequest, seconds: float, out: TextIO | None) -> None:
    start = time.monotonic()
    with input_checked():
        on = muster(wish.crew, wish.spec, lambda: lab.simulation.provider)
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
