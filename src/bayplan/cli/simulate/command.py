"""The command: asks for runs, has them made, and writes what they came to."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import bayplan
from bayplan.cli.errors import EXIT_NO, EXIT_OK, BadInput, Unwritable
from bayplan.cli.options.cluster import Gates
from bayplan.cli.simulate.on_cluster import OnCluster, made_on_cluster
from bayplan.cli.text.output import notices, printable, show, table
from bayplan.cli.text.progress import show_runs
from bayplan.client.signals import ended_by_signals
from bayplan.lab.lab import DaemonFailedError
from bayplan.lab.measuring import Measured
from bayplan.lab.measuring.meter import FIGURES
from bayplan.lab.reporting.page import as_page
from bayplan.lab.reporting.plots import number, signed
from bayplan.lab.reporting.report import About, Report, as_json, make_report
from bayplan.lab.reporting.tables import write_csv
from bayplan.lab.simulating.orders import Inputs, Order, Results
from bayplan.lab.simulating.pool import Failure, carry_out, run_all
from bayplan.lab.simulating.variants import SimulationRequest, inputs_of
from bayplan.observe.recorder import Recorder
from bayplan.recordings import RecordingWriter

_REPEATED = {"consume_multiple": False, "show_default": False}


def simulate(  # noqa: PLR0913 - one for each option of the command
    file: Path,
    /,
    *,
    for_: Annotated[str, Parameter("--for")],
    set_: Annotated[tuple[str, ...], Parameter("--set", **_REPEATED)] = (),
    trace: Path | None = None,
    scale_time: float = 1.0,
    compare: Annotated[tuple[Path, ...], Parameter(**_REPEATED)] = (),
    compare_set: Annotated[tuple[str, ...], Parameter(**_REPEATED)] = (),
    gate: Annotated[tuple[str, ...], Parameter(**_REPEATED)] = (),
    expander: Annotated[tuple[str, ...], Parameter(**_REPEATED)] = (),
    feature_gates: Gates = "",
    with_: Annotated[str, Parameter("--with")] = "scheduler,autoscaler,queues",
    seed: int | None = None,
    seeds: int = 1,
    jobs: int | None = None,
    points: int = 240,
    work: Path | None = None,
    report: Path | None = None,
    json: Path | None = None,
    csv: Path | None = None,
    record: Path | None = None,
    on_cluster: OnCluster | None = None,
) -> int:
    """Run clusters in virtual time, compare variants over seeds, and report.

    The cluster file is the base; every --compare, --compare-set, --gate and --expander is a variant
    of it. Each runs with the same seeds, so that differences are taken seed by seed.

    Parameters
    ----------
    file
        The cluster file.
    for_
        How long each run is, such as 90m or 24h.
    set_
        Set something over the cluster file, such as nodeGroups[workers].max=20; may be repeated.
    trace
        Work beside the cluster file's: a CSV file of arrivals, durations, requests, claims, queues,
        or a recording (.bpr) from which the same is read.
    scale_time
        Bring the arrivals of the trace closer together (0.5: twice as fast) or farther apart.
    compare
        A variant: another cluster file; may be repeated.
    compare_set
        A variant: the base with this set over it; may be repeated.
    gate
        A variant: the base with feature gates set, such as VolumeLimitScaling=false; may be
        repeated.
    expander
        A variant: the base whose autoscaler chooses groups so; may be repeated.
    with_
        Which daemons are at work: scheduler, autoscaler, queues, node-agent.
    seed
        The first seed; the base's unless said.
    seeds
        How many seeds: this one and those that follow.
    jobs
        How many runs are made at a time, each in a process; as many as there are processors. On a
        cluster, each in a pod; all of them at a time.
    points
        Points of each curve.
    work
        Keep the results of runs in this folder, and do not make again those that are there.
    report
        Write the report as a page to this file.
    json
        Write the report as JSON to this file.
    csv
        Write every run's curves, figures and events as CSV into this folder.
    record
        Record the base's first seed into this file, for `bayplan ui`; that is one more run.
    """
    asked = SimulationRequest(
        file, for_, set_, compare, compare_set, gate, expander, feature_gates, with_, seed, seeds,
        points, trace, scale_time,
    )  # fmt: skip
    _check(jobs, points)
    check_place(record)
    _check_places(report, json, csv)
    inputs = inputs_of(asked, _note)
    if on_cluster is not None and on_cluster.on_cluster:
        results, failures = made_on_cluster(on_cluster, inputs, jobs)
    else:
        with ended_by_signals(), _folder(work) as folder:
            results, failures = _made(inputs, folder, jobs or os.cpu_count() or 1)
    if record is not None:
        recorded(inputs.orders()[0], record)
    about = About(version=bayplan.__version__, command=asked.command(report))
    made = make_report(about, inputs, results, failures)
    _write(made, inputs, results, (report, json, csv))
    _tell(made)
    return EXIT_NO if failures else EXIT_OK


def _note(text: str) -> None:
    notices().print(f"note: {printable(text)}", style="yellow")


def _check(jobs: int | None, points: int) -> None:
    if jobs is not None and not 1 <= jobs <= 256:
        raise BadInput(f"--jobs {jobs}: from 1 to 256")
    if not 10 <= points <= 2000:
        raise BadInput(f"--points {points}: from 10 to 2000")


def _check_places(report: Path | None, json: Path | None, csv: Path | None) -> None:
    """BadInput if something cannot be written there, which is better said before all runs."""
    for option, path in (("--report", report), ("--json", json)):
        if path is not None and path.is_dir():
            raise BadInput(f"{option} {path}: is a folder; give a file")
        if path is not None and path.exists():
            _check_writable(f"{option} {path}", path)
        elif path is not None:
            _check_folder(f"{option} {path}", path.parent)
    if csv is not None:
        _check_folder(f"--csv {csv}", next(one for one in (csv, *csv.parents) if one.exists()))


def _check_folder(place: str, folder: Path) -> None:
    if not folder.is_dir():
        raise BadInput(f"{place}: there is no folder {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"{place}: nothing can be written into {folder}")


def _check_writable(place: str, file: Path) -> None:
    """Raise BadInput if an existing file cannot be written; its folder does not matter."""
    if not os.access(file, os.W_OK):
        raise BadInput(f"{place}: cannot be written")


@contextmanager
def _folder(work: Path | None) -> Iterator[Path]:
    """Where results are kept while runs are made, or longer."""
    if work is None:
        with tempfile.TemporaryDirectory(prefix="bayplan-simulate-") as made:
            yield Path(made)
        return
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise BadInput(f"--work {work}: {problem.strerror}") from None
    yield work


def _made(
    inputs: Inputs, folder: Path, jobs: int
) -> tuple[list[tuple[Order, Measured]], list[Failure]]:
    orders = inputs.orders()
    with show_runs(len(orders)) as tell:
        failures = run_all(orders, folder, bayplan.__version__, min(jobs, len(orders)), tell)
    results = Results(folder, bayplan.__version__)
    found = ((order, results.find(order)) for order in orders)
    return [(order, one) for order, one in found if one is not None], failures


def _write(
    made: Report,
    inputs: Inputs,
    results: Sequence[tuple[Order, Measured]],
    places: tuple[Path | None, Path | None, Path | None],
) -> None:
    page, json, csv = places
    if page is not None:
        with _writing(page):
            page.write_text(as_page(made, inputs), encoding="utf-8")
    if json is not None:
        with _writing(json):
            json.write_bytes(as_json(made))
    if csv is not None:
        with _writing(csv):
            write_csv(csv, results)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Unwritable with the name of the file, which a full disk does not say."""
    try:
        yield
    except OSError as problem:
        raise Unwritable(f"{problem.filename or path}: {problem.strerror}") from problem


def _tell(made: Report) -> None:
    """The key figures on standard output; what failed on standard error."""
    for one in made.failures:
        notices().print(f"{one.variant}, seed {one.seed}: failed: {one.why}", style="red")
    if not made.variants:
        return
    headings = ["FIGURE"]
    for index, variant in enumerate(made.variants):
        headings += [variant.name, "DIFFERENCE"] if index else [variant.name]
    show([table(headings, _rows(made))])


def _rows(made: Report) -> list[list[str]]:
    rows = []
    for name, figure in FIGURES.items():
        row = [figure.title]
        for index, variant in enumerate(made.variants):
            row.append(number(variant.figures[name].mean, figure.unit))
            if index:
                row.append(signed(variant.differences[name].mean, figure.unit))
        rows.append(row)
    return rows


FLUSH_SECONDS = 600.0
"""Of virtual time; nobody reads the file meanwhile."""


def check_place(path: Path | None) -> None:
    """BadInput if no recording can be made there, which is better said before all runs."""
    if path is not None and path.exists():
        raise BadInput(f"--record {path}: is there already")
    if path is not None and not path.parent.is_dir():
        raise BadInput(f"--record {path}: there is no folder {path.parent}")


def recorded(order: Order, path: Path) -> None:
    """Make the run again, into that file."""
    logging.disable(logging.CRITICAL)
    recorder = Recorder(
        lambda clock: RecordingWriter(path, name=order.title, start=clock.now()),
        flush_seconds=FLUSH_SECONDS,
    )
    try:
        carry_out(order, beside=[recorder.lead])
    except DaemonFailedError as problem:
        raise Unwritable(f"--record {path}: {problem.__cause__}") from problem
    finally:
        logging.disable(logging.NOTSET)
