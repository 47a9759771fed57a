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

from bayplan.lab.reporting.report import About, as_json, make_report
from bayplan.lab.simulating.orders import Inputs, Results
from bayplan.lab.simulating.pool import carry_out, run_all
from bayplan.lab.simulating.variants import SimulationRequest, inputs_of
from bench.measure import Result

CLUSTER = Path(__file__).parents[1] / "examples" / "busy-day.yaml"
SEEDS = 10
RUNS = 3


def cases() -> Iterator[Result]:
    """What an hour costs; what all runs cost, and how many different reports two of them gave."""
    yield Result("simulate/hour", min(hour() for _ in range(RUNS)), "s")
    inputs = inputs_of(SimulationRequest(CLUSTER, os.environ.get("BENCH_FOR", "24h"), seeds=SEEDS))
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
    (order,) = inputs_of(SimulationRequest(CLUSTER, "1h")).orders()
    start = time.process_time()
    carry_out(order)
    return time.process_time() - start


def _used_by_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def report(inputs: Inputs) -> bytes:
    """The report of all runs, made anew."""
    orders = inputs.orders()
    with tempfile.TemporaryDirectory() as folder:
        failures = run_all(orders, Path(folder), "bench", os.cpu_count() or 1, lambda *_: None)
        if failures:
            raise RuntimeError(failures[0].why)
        results = Results(Path(folder), "bench")
        found = [(order, one) for order in orders if (one := results.find(order)) is not None]
    return as_json(make_report(About(version="", command=""), inputs, found, []))
