"""The scheduler end to end: server, scheduler and load as processes of their own, on two cores.

Five likes of Kubernetes' scheduler_perf workloads at a tenth of their size, a backlog of plain pods
that is there before the scheduler is, and how long pods wait that come one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import uvloop

from bench.measure import Result
from bench.scheduler_perf.command import backlog, run, steady
from bench.scheduler_perf.workloads import Operation, Workload

BACKLOG = 5000
STEADY = 2000
RATE = 200.0
"""Pods that come one by one, and how many of them a second."""
_ZONE = "topology.kubernetes.io/zone"
_HOST = "kubernetes.io/hostname"


def cases() -> Iterator[Result]:
    """Every figure, as it is measured."""
    for name, workload in _likes().items():
        measured, taken = uvloop.run(run(workload))
        yield Result(f"scheduler/{name}", measured.average, "1/s")
        yield Result(f"scheduler/{name}/alone", measured.alone(taken.cpu), "1/s")
    for nodes in (1000, 5000):
        measured, taken = uvloop.run(backlog(nodes, BACKLOG))
        case = f"scheduler/backlog/{nodes}"
        yield Result(case, measured.overall, "1/s")
        yield Result(f"{case}/alone", measured.alone(taken.cpu), "1/s")
        yield Result(f"{case}/cpu", taken.cpu[0], "s")
        yield Result(f"{case}/memory", taken.memory, "MiB")
    measured = uvloop.run(steady(1000, STEADY, RATE))
    for share in (0.5, 0.99):
        wait = 1000 * (measured.wait(share) or 0.0)
        yield Result(f"scheduler/steady/1000/p{share * 100:.0f}", wait, "ms")


def _likes() -> dict[str, Workload]:
    labels = {"app": "bench"}
    selector = {"labelSelector": {"matchLabels": labels}}
    spread = {"maxSkew": 1, "topologyKey": _ZONE, "whenUnsatisfiable": "DoNotSchedule", **selector}
    apart = [{"topologyKey": _HOST, **selector}]
    beside = [{"topologyKey": _ZONE, **selector}]
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "plain": _workload("plain", {}),
        "spread": _workload("spread", {"topologySpreadConstraints": [spread]}),
        "anti-affinity": _workload(
            "anti-affinity", {"affinity": {"podAntiAffinity": {required: apart}}}, pods=400
        ),
        "affinity": _workload("affinity", {"affinity": {"podAffinity": {required: beside}}}),
        "secrets": _workload(
            "secrets", {"volumes": [{"name": "s", "secret": {"secretName": "s"}}]}
        ),
    }


def _workload(name: str, spec: dict[str, Any], nodes: int = 500, pods: int = 1000) -> Workload:
    here = Path(__file__).parent
    zones = {"labelKey": _ZONE, "labelValues": ["a", "b", "c"]}
    steps = (
        Operation("createNodes", {"count": nodes, "labelNodePrepareStrategy": zones}, here),
        Operation("createPods", {"count": pods, "collectMetrics": True, "podSpec": spec}, here),
    )
    return Workload(name, steps)
