"""Ten seeds of a day of 200 nodes, each in a process of its own, twice: the reports must be equal.

`python -m bench simulate`; it takes minutes.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bayplan.cli.simulate.variants import Asked, inputs_of
from bayplan.lab.reporting.report import About, as_json, make_report
from bayplan.lab.simulating.orders import Inputs
from bayplan.lab.simulating.pool import run_all
from bayplan.lab.simulating.results import Results
from bench.measure import Result

CLUSTER = Path(__file__).parents[1] / "examples" / "busy-day.yaml"
SEEDS = 10


def cases() -> Iterator[Result]:
    """Wall time of all runs, and how many different reports two of them gave."""
    inputs = inputs_of(Asked(CLUSTER, os.environ.get("BENCH_FOR", "24h"), seeds=SEEDS))
    reports, seconds = set(), []
    for _ in range(2):
        start = time.monotonic()
        reports.add(report(inputs))
        seconds.append(time.monotonic() - start)
    yield Result("simulate/ten-seeds", min(seconds), "s")
    yield Result("simulate/ten-seeds/different-reports", len(reports) - 1, "reports")


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
