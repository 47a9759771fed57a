"""The command: runs the simulations and writes the report."""

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
from bayplan.client.signals import interrupted_by_signals
from bayplan.lab.lab import DaemonFailedError
from bayplan.lab.measurement import RunMeasurements
from bayplan.lab.measurement.meter import FIGURES
from bayplan.lab.report.data import ReportOrigin, SimulationReport, as_json, make_report
from bayplan.lab.report.page import as_page
from bayplan.lab.report.plots import number, signed
from bayplan.lab.report.tables import write_csv
from bayplan.lab.simulation.pool import RunFailure, run_all, run_simulation
from bayplan.lab.simulation.runspec import RunResults, RunSpec, SimulationInputs
from bayplan.lab.simulation.variants import SimulationRequest, build_inputs
from bayplan.observe.recorder import ClusterRecorder
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
    """Simulate clusters in virtual time, compare variants over seeds, and write a report.

    The cluster file is the base; every --compare, --compare-set, --gate and --expander is a variant
    of it. All run with the same seeds, and differences are computed seed by seed.

    Parameters
    ----------
    file
        The cluster file.
    for_
        The simulated time of each run, such as 90m or 24h.
    set_
        A field to change in the cluster file, such as nodeGroups[workers].max=20; may be repeated.
    trace
        An additional workload: a CSV file of arrivals, durations, requests, claims and queues, or a
        recording (.bpr).
    scale_time
        The factor for arrival times of the trace: 0.5 is twice as fast.
    compare
        A variant: another cluster file; may be repeated.
    compare_set
        A variant: the base with this field changed; may be repeated.
    gate
        A variant: the base with other feature gates, such as VolumeLimitScaling=false; may be
        repeated.
    expander
        A variant: the base with another expander of the autoscaler; may be repeated.
    with_
        The daemons to run: scheduler, autoscaler, queues, node-agent.
    seed
        The first seed; by default that of the base.
    seeds
        The number of consecutive seeds.
    jobs
        The number of parallel runs, each in a process; by default the number of processors. On a
        cluster each is in a pod; by default all in parallel.
    points
        The number of points of each curve.
    work
        The folder for results of runs; runs whose results exist are not repeated.
    report
        The file to write the report to, as a web page.
    json
        The file to write the report to, as JSON.
    csv
        The folder to write the curves, figures and events of every run to, as CSV.
    record
        The file to record the base's first seed to, for `bayplan ui`; this takes one more run.
    """
    asked = SimulationRequest(
        file, for_, set_, compare, compare_set, gate, expander, feature_gates, with_, seed, seeds,
        points, trace, scale_time,
    )  # fmt: skip
    _check(jobs, points)
    check_place(record)
    _check_places(report, json, csv)
    inputs = build_inputs(asked, _note)
    if on_cluster is not None and on_cluster.on_cluster:
        results, failures = made_on_cluster(on_cluster, inputs, jobs)
    else:
        with interrupted_by_signals(), _folder(work) as folder:
            results, failures = _made(inputs, folder, jobs or os.cpu_count() or 1)
    if record is not None:
        recorded(inputs.runs()[0], record)
    about = ReportOrigin(version=bayplan.__version__, command=asked.command(report))
    made = make_report(about, inputs, results, failures)
    _write(made, inputs, results, (report, json, csv))
    _print_report(made)
    return EXIT_NO if failures else EXIT_OK


def _note(text: str) -> None:
    notices().print(f"note: {printable(text)}", style="yellow")


def _check(jobs: int | None, points: int) -> None:
    if jobs is not None and not 1 <= jobs <= 256:
        raise BadInput(f"--jobs {jobs}: must be from 1 to 256")
    if not 10 <= points <= 2000:
        raise BadInput(f"--points {points}: must be from 10 to 2000")


def _check_places(report: Path | None, json: Path | None, csv: Path | None) -> None:
    """Raise BadInput before the runs if the output cannot be written."""
    for option, path in (("--report", report), ("--json", json)):
        if path is not None and path.is_dir():
            raise BadInput(f"{option} {path}: is a folder, must be a file")
        if path is not None and path.exists():
            _check_writable(f"{option} {path}", path)
        elif path is not None:
            _check_folder(f"{option} {path}", path.parent)
    if csv is not None:
        _check_folder(f"--csv {csv}", next(one for one in (csv, *csv.parents) if one.exists()))


def _check_folder(place: str, folder: Path) -> None:
    if not folder.is_dir():
        raise BadInput(f"{place}: folder {folder} does not exist")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"{place}: folder {folder} is not writable")


def _check_writable(place: str, file: Path) -> None:
    """Raise BadInput if an existing file cannot be written; its folder does not matter."""
    if not os.access(file, os.W_OK):
        raise BadInput(f"{place}: is not writable")


@contextmanager
def _folder(work: Path | None) -> Iterator[Path]:
    """Yield the folder of results: the given one, or a temporary one."""
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
    inputs: SimulationInputs, folder: Path, jobs: int
) -> tuple[list[tuple[RunSpec, RunMeasurements]], list[RunFailure]]:
    orders = inputs.runs()
    with show_runs(len(orders)) as progress:
        failures = run_all(orders, folder, bayplan.__version__, min(jobs, len(orders)), progress)
    results = RunResults(folder, bayplan.__version__)
    found = ((order, results.find(order)) for order in orders)
    return [(order, one) for order, one in found if one is not None], failures


def _write(
    made: SimulationReport,
    inputs: SimulationInputs,
    results: Sequence[tuple[RunSpec, RunMeasurements]],
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
    """Convert OSError to Unwritable with the name of the file."""
    try:
        yield
    except OSError as problem:
        raise Unwritable(f"{problem.filename or path}: {problem.strerror}") from problem


def _print_report(made: SimulationReport) -> None:
    """Print the key figures on standard output, and failed runs on standard error."""
    for one in made.failures:
        notices().print(f"{one.variant}, seed {one.seed}: failed: {one.reason}", style="red")
    if not made.variants:
        return
    headings = ["FIGURE"]
    for index, variant in enumerate(made.variants):
        headings += [variant.name, "DIFFERENCE"] if index else [variant.name]
    show([table(headings, _rows(made))])


def _rows(made: SimulationReport) -> list[list[str]]:
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
"""The flush interval in virtual seconds; the file is not read during the run."""


def check_place(path: Path | None) -> None:
    """Raise BadInput before the runs if the recording cannot be written."""
    if path is not None and path.exists():
        raise BadInput(f"--record {path}: already exists")
    if path is not None and not path.parent.is_dir():
        raise BadInput(f"--record {path}: folder {path.parent} does not exist")


def recorded(order: RunSpec, path: Path) -> None:
    """Repeat a run and record it to a file."""
    logging.disable(logging.CRITICAL)
    recorder = ClusterRecorder(
        lambda clock: RecordingWriter(path, name=order.title, start=clock.now()),
        flush_seconds=FLUSH_SECONDS,
    )
    try:
        run_simulation(order, extra_daemons=[recorder.lead])
    except DaemonFailedError as problem:
        raise Unwritable(f"--record {path}: {problem.__cause__}") from problem
    finally:
        logging.disable(logging.NOTSET)
