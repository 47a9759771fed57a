"""The costs of unschedulable pods: naming the plugins that refused one, finding its victims, and
deciding about other pods while nodes are reserved for nominated ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from bayplan.fit import Snapshot
from bayplan.fit.preemption import preempt
from bench import clusters
from bench.measure import Result, placed_a_second

NODES = 5000
RUNS = 3


def cases() -> Iterator[Result]:
    """All of them."""
    snapshot = Snapshot(clusters.crowded(NODES, each=30, budgets=50))
    yield Result("fit/preemption", _preemption(snapshot), "ms")
    yield Result("fit/hints", _refusing_plugins(snapshot), "ms")
    yield Result("fit/nominated", _beside_nominated(), "ms")


def _preemption(snapshot: Snapshot) -> float:
    """Milliseconds for one preemption among full nodes, with budgets over the pods there."""
    best = float("inf")
    for pod in clusters.urgent_pods(RUNS + 1):  # the first works out what the others know
        start = time.perf_counter()
        if preempt(snapshot, pod).node is None:
            raise RuntimeError(f"{pod.key} has no victims: the workload is wrong")
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def _refusing_plugins(snapshot: Snapshot) -> float:
    """Milliseconds to refuse a pod on every node, and to say which plugins did."""
    pod = clusters.urgent_pods(1)[0]
    best = float("inf")
    for _ in range(100):
        start = time.perf_counter()
        if not snapshot.decide(pod).plugins:
            raise RuntimeError(f"{pod.key} is refused by no plugin: the workload is wrong")
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def _beside_nominated() -> float:
    """Milliseconds for a decision while a tenth of the nodes is kept for nominated pods."""
    snapshot = Snapshot(clusters.nodes(NODES))
    for index, pod in enumerate(clusters.urgent_pods(NODES // 10)):
        snapshot.nominate(pod, f"node-{index}")
    waiting = clusters.plain_pods(500)
    return 1e3 / placed_a_second(snapshot, waiting, warm=200)
