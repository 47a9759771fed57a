"""Microseconds of one placement, of pods that need more work than plain ones, and of an update that
changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import msgspec

from bayplan.fit import Snapshot
from bayplan.kube.meta import Condition, KubeObject
from bayplan.kube.pods import Pod
from bench import clusters
from bench.measure import Result, placed_a_second

NODES = 5000
RUNS = 3
JOBS = 2000
UPDATES = 5000


def cases() -> Iterator[Result]:
    """All of them."""
    for nodes in (100, 1000):
        pods, objects = clusters.local_volume_pods(nodes, 4)
        cost = _placement([*clusters.nodes(nodes), *objects], pods)
        yield Result(f"fit/local-volumes/{nodes}", cost, "us")
    yield Result("fit/jobs", _placement(clusters.nodes(NODES), clusters.job_pods(JOBS, 1)), "us")
    daemons = clusters.daemon_pods(NODES)[:JOBS]
    yield Result("fit/daemons", _placement(clusters.nodes(NODES), daemons), "us")
    yield Result("fit/status-update", min(_status_update() for _ in range(RUNS)), "us")


def _placement(objects: Sequence[KubeObject], pods: list[Pod]) -> float:
    return 1e6 / max(placed_a_second(Snapshot(objects), pods, warm=0) for _ in range(RUNS))


def _status_update() -> float:
    """Return the cost of a status update of a placed pod in which nothing relevant changed."""
    snapshot = Snapshot(clusters.nodes(NODES))
    pods = clusters.plain_pods(UPDATES)
    for index, pod in enumerate(pods):
        pod.spec.node_name = f"node-{index % NODES}"
        snapshot.put(pod)
    updates = [_ready(pod) for pod in pods]
    start = time.perf_counter()
    for pod in updates:
        snapshot.put(pod)
    return (time.perf_counter() - start) / len(updates) * 1e6


def _ready(pod: Pod) -> Pod:
    status = msgspec.structs.replace(
        pod.status, phase="Running", conditions=[Condition(type="Ready", status="True")]
    )
    return msgspec.structs.replace(pod, status=status)
