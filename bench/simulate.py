"""The first hour of a day of 200 nodes; then ten seeds of the whole day, each in a process of its
own, twice: the reports must be equal.

`python -m bench simulate` takes many minutes; with BENCH_FOR=1h the days are shorter.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bayplan.lab.report.data import ReportOrigin, as_json, make_report
from bayplan.lab.simulation.pool import run_all, run_simulation
from bayplan.lab.simulation.runspec import RunResults, SimulationInputs
from bayplan.lab.simulation.variants import SimulationRequest, build_inputs
from bench.measure import Result

CLUSTER = Path(__file__).parents[1] / "examples" / "busy-day.yaml"
SEEDS = 10
RUNS = 3


def cases() -> Iterator[Result]:
    """What an hour costs; what all runs cost, and how many different reports two of them gave."""
    yield Result("simulate/hour", min(hour() for _ in range(RUNS)), "s")
    inputs = build_inputs(
        SimulationRequest(CLUSTER, os.environ.get("BENCH_FOR", "24h"), seeds=SEEDS)
    )
    reports, seconds, before = set(), [], _used_by_children()
    for _ in range(2):
        start = time.monotonic()
        reports.add(report(inputs))
        seconds.append(time.monotonic() - start)
    yield Result("simulate/ten-seeds", min(seconds), "s")
    each = (_used_by_children() - before) / (2 * SEEDS)
    yield Result("simulate/ten-seeds/core-seconds", each, "s")
    yield Result("simulate/ten-seeds/different-reports", len(reports) - 1, "reports")


def hour() -> float:
    """Seconds of one core for the first hour of one seed, with all that a run begins with."""
    (run,) = build_inputs(SimulationRequest(CLUSTER, "1h")).runs()
    start = time.process_time()
    run_simulation(run)
    return time.process_time() - start


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(inputs: SimulationInputs) -> bytes:
    """The report of all runs, made anew."""
    runs = inputs.runs()
    with tempfile.TemporaryDirectory() as folder:
        failures = run_all(runs, Path(folder), "bench", os.cpu_count() or 1, lambda *_: None)
        if failures:
            raise RuntimeError(failures[0].reason)
        results = RunResults(Path(folder), "bench")
        found = [(run, one) for run in runs if (one := results.find(run)) is not None]
    return as_json(make_report(ReportOrigin(version="", command=""), inputs, found, []))
