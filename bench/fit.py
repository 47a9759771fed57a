"""Decisions a second, and what they cost in memory and as forks.

A decision is the whole of it: find the pod's equivalence class, ask all default filters and scores
of every node, take the best, assume the pod there. One core; pods are ready as objects, as a queue
would hold them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from bayplan.fit import Decision, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bench import clusters, placement, unschedulable
from bench.load import loaded_alone
from bench.measure import Result, placed_a_second

SIZES = (1000, 5000)
DECISIONS = 20_000
RUNS = 3
Workload = Callable[[int], tuple[list[KubeObject], list[Pod]]]


def _plain(nodes: int) -> tuple[list[KubeObject], list[Pod]]:
    return [*clusters.nodes(nodes)], clusters.plain_pods(DECISIONS)


def _volumes(nodes: int) -> tuple[list[KubeObject], list[Pod]]:
    count = min(DECISIONS, nodes * 20)
    pods, objects = clusters.volume_pods(count)
    return [*clusters.nodes(nodes), *clusters.csinodes(nodes), *objects], pods


def _spread(nodes: int) -> tuple[list[KubeObject], list[Pod]]:
    return [*clusters.nodes(nodes)], clusters.spread_pods(min(DECISIONS // 4, nodes * 5))


def _apart(nodes: int) -> tuple[list[KubeObject], list[Pod]]:
    return [*clusters.nodes(nodes)], clusters.repelling_pods(min(DECISIONS // 4, nodes * 5))


WORKLOADS: dict[str, Workload] = {
    "plain": _plain,
    "volumes": _volumes,
    "spread": _spread,
    "anti-affinity": _apart,
}


def cases() -> Iterator[Result]:
    """All figures of the model."""
    for name, workload in WORKLOADS.items():
        rates = {}
        for size in SIZES:
            rates[size] = _decisions(workload, size)
            yield Result(f"fit/{name}/{size}", rates[size], "decisions/s")
        yield Result(f"fit/{name}/growth", rates[SIZES[0]] / rates[SIZES[-1]], "x")
    decision = Decision("node-7")
    yield Result("fit/fork", _fork_cost(lambda trial, pod: trial.assume(pod, decision)), "us")
    yield Result("fit/fork/decided", _fork_cost(lambda trial, pod: trial.place(pod)), "us")
    yield from placement.cases()
    yield from unschedulable.cases()
    yield from _loading()


def _decisions(workload: Workload, size: int) -> float:
    return max(_one_run(*workload(size)) for _ in range(RUNS))


def _one_run(objects: list[KubeObject], pods: list[Pod]) -> float:
    return placed_a_second(Snapshot(objects), pods)


def _fork_cost(place: Callable[[Snapshot, Pod], object]) -> float:
    """Microseconds for a fork, one placement (on a given node, or decided) and its revert."""
    snapshot = Snapshot(clusters.nodes(SIZES[-1]))
    pods = clusters.plain_pods(2000)
    best = float("inf")
    for _ in range(RUNS):
        start = time.perf_counter()
        for pod in pods:
            snapshot.begin()
            place(snapshot, pod)
            snapshot.revert()
        best = min(best, (time.perf_counter() - start) / len(pods))
    return best * 1e6


def _loading() -> Iterator[Result]:
    """Seconds and MiB to load 5,000 nodes and 150,000 pods from JSON, in a process of its own."""
    seconds, mebibytes, _ = loaded_alone()
    yield Result("fit/load/seconds", seconds, "s")
    yield Result("fit/load/memory", mebibytes, "MiB")
