"""`python -m bench [PREFIX…]`: run the cases whose names start so, or all that take seconds.

`python -m bench scheduler-perf --from DIR [NAME…]` runs Kubernetes' own scheduler benchmark.
"""

from __future__ import annotations

import sys
from importlib import import_module

from bench.measure import line

SUITES = (
    "fit",
    "batches",
    "autoscaler",
    "plan",
    "scaledown",
    "apiserver",
    "images",
    "simulation",
    "scheduler",
    "queues",
    "batch",
    "webhook",
    "explain",
    "page",
    "ui",
)
BY_NAME = ("scale", "simulate")
"""Suites that take minutes, and run only if they are named."""


def main(prefixes: list[str]) -> None:
    """Print one JSON line a case."""
    named = {prefix.split("/")[0] for prefix in prefixes}
    for suite in (*SUITES, *BY_NAME):
        if suite not in (named or SUITES):
            continue
        for result in import_module(f"bench.{suite}").cases():
            if not prefixes or any(result.case.startswith(prefix) for prefix in prefixes):
                print(line(result), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["scheduler-perf"]:
        sys.exit(import_module("bench.scheduler_perf.command").main(sys.argv[2:]))
    main(sys.argv[1:])
