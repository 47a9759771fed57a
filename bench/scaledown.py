"""What it costs to find the nodes that are not needed: a thousand candidates among five thousand.

Busy nodes have twenty pods each and are used to two thirds; candidates have eight, and two daemons.
Every candidate is judged, its pods are held against the drain rules and budgets, and each finds a
place on another node, in what the candidates before it left. `idle` is a plan in which nothing has
changed and no node is used so little that it is looked at. A plan is one thread's work and waits
for nothing, so what counts is the time that it has a core for itself.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaledown import Planner, ScaleDownContext
from bayplan.autoscaler.scaledown.drain import Controllers
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.workloads import DaemonSet
from bayplan.nodegroups import CloudNodeGroup
from bench import clusters
from bench.measure import Result
from tests.builders import PodBuilder, make_pdb, make_pod, make_pv, make_pvc, make_replica_set
from tests.builders import selector as select

NODES, CANDIDATES = 5000, 1000
BUSY_PODS, SPARE_PODS, DAEMONS = 20, 8, 2
APPS = 200
RUNS = 3
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = AutoscalerOptions(max_scale_down_parallelism=NODES)
Decorate = Callable[[PodBuilder, int, list[KubeObject]], object]


def _plain(_pod: PodBuilder, _index: int, _objects: list[KubeObject]) -> object:
    return None


def _with_volume(pod: PodBuilder, index: int, objects: list[KubeObject]) -> object:
    name = f"claim-{index}"
    volume = make_pv(f"pv-{index}").csi(clusters.DRIVER, f"vol-{index}").bound_to(name)
    objects += [make_pvc(name).volume(f"pv-{index}").obj(), volume.obj()]
    return pod.claim(name)


def _spread(pod: PodBuilder, index: int, _objects: list[KubeObject]) -> object:
    return pod.spread(clusters.ZONE, 5, label_selector=select(app=f"app-{index % APPS}"))


WORKLOADS: dict[str, Decorate] = {"plain": _plain, "volumes": _with_volume, "spread": _spread}


def cases() -> Iterator[Result]:
    """Seconds for a whole plan, cold; and for one in which nothing is to be done."""
    for name, decorate in WORKLOADS.items():
        for nodes, candidates in ((1000, 200), (NODES, CANDIDATES)):
            seconds, found = _best(cluster(decorate, nodes, candidates))
            if found < candidates:
                raise RuntimeError(f"only {found} nodes can go: the workload is wrong")
            yield Result(f"scaledown/{name}/{candidates}-of-{nodes}", seconds, "s")
    yield Result("scaledown/idle/5000", _idle(cluster(_plain, NODES, 0)), "ms")


def cluster(decorate: Decorate, nodes: int, candidates: int) -> ClusterView:
    """A cluster of which the last nodes are not needed."""
    rng = random.Random(1)
    objects: list[KubeObject] = [*clusters.nodes(nodes), *clusters.csinodes(nodes, 30)]
    for app in range(APPS):
        objects.append(make_replica_set(f"app-{app}", app=f"app-{app}").obj())
        budget = make_pdb(f"app-{app}", select(app=f"app-{app}")).allows(10_000)
        objects.append(budget.obj())
    index = 0
    for number in range(nodes):
        spare = number >= nodes - candidates
        for _ in range(SPARE_PODS if spare else BUSY_PODS):
            objects.append(_pod(rng, index, f"node-{number}", decorate, objects))
            index += 1
        objects += [_daemon(number, copy) for copy in range(DAEMONS)]
    return _view(objects, nodes)


def _pod(
    rng: random.Random, index: int, node: str, decorate: Decorate, objects: list[KubeObject]
) -> KubeObject:
    size = rng.randrange(clusters.SHAPES)
    app = f"app-{index % APPS}"
    pod = make_pod(f"pod-{index}").cpu(f"{600 + 50 * size}m").memory(f"{128 + 64 * size}Mi")
    pod.labels(app=app).owner("ReplicaSet", app).node(node).phase("Running")
    decorate(pod, index, objects)
    return pod.obj()


def _daemon(node: int, copy: int) -> KubeObject:
    pod = make_pod(f"daemon-{copy}-{node}", "kube-system").cpu("100m").memory("128Mi")
    return pod.owner("DaemonSet", f"daemon-{copy}").node(f"node-{node}").phase("Running").obj()


def _view(objects: list[KubeObject], nodes: int) -> ClusterView:
    names = tuple(f"node-{number}" for number in range(nodes))
    view = NodeGroupView(CloudNodeGroup("group", 0, nodes), nodes, nodes=names)
    group_of = dict.fromkeys(names, "group")
    return ClusterView(Snapshot(objects), NOW, OPTIONS, {"group": view}, group_of)


def _context(view: ClusterView) -> ScaleDownContext:
    daemons = {f"kube-system/daemon-{copy}": DaemonSet() for copy in range(DAEMONS)}
    return ScaleDownContext(Controllers(view.snapshot, daemon_sets=daemons))


def _best(view: ClusterView) -> tuple[float, int]:
    given, best, found = _context(view), float("inf"), 0
    gc.collect()
    gc.freeze()
    for _ in range(RUNS):
        start = time.process_time()
        found = len(Planner().plan(view, given).removable)
        best = min(best, time.process_time() - start)
    gc.unfreeze()
    return best, found


def _idle(view: ClusterView) -> float:
    """Milliseconds for a plan after the first."""
    planner, given, best = Planner(), _context(view), float("inf")
    for run in range(RUNS + 2):
        later = replace(view, now=NOW.replace(minute=run))
        start = time.process_time()
        planner.plan(later, given)
        if run:
            best = min(best, time.process_time() - start)
    return best * 1000
