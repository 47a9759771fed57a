"""What a pod costs that fits nowhere: who would have to go for it."""

from __future__ import annotations

import time
from collections.abc import Iterator

from bayplan.fit import Snapshot
from bayplan.fit.preemption import preempt
from bench import clusters
from bench.measure import Result

NODES = 5000
RUNS = 3


def cases() -> Iterator[Result]:
    """All of them."""
    snapshot = Snapshot(clusters.crowded(NODES, each=30, budgets=50))
    yield Result("fit/preemption", _preemption(snapshot), "ms")


def _preemption(snapshot: Snapshot) -> float:
    """Milliseconds for one preemption among full nodes, with budgets over the pods there."""
    best = float("inf")
    for pod in clusters.urgent_pods(RUNS + 1):  # the first works out what the others know
        start = time.perf_counter()
        if preempt(snapshot, pod).node is None:
            raise RuntimeError(f"{pod.key} pushes nobody out: the workload is wrong")
        best = min(best, time.perf_counter() - start)
    return best * 1e3
