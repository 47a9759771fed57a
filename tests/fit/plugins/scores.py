"""Two nodes, a busy and an idle one, and what a set of plugins scores them."""

from __future__ import annotations

from collections.abc import Hashable

from bayplan.fit import PluginSet, Snapshot
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.kube.meta import Quantity
from bayplan.kube.pods import Pod
from tests.builders import PodBuilder, make_node, make_pod

GPU = "example.com/gpu"


HOST = "kubernetes.io/hostname"


ZONE = "topology.kubernetes.io/zone"


def only(score: str, *args: Hashable) -> PluginSet:
    """Return all filters, and this score alone."""
    return PluginSet(scores=((score, 1),), args=args)


def scored(snapshot: Snapshot, pod: Pod, plugins: PluginSet) -> dict[str, int]:
    """The total of each node that fits."""
    said = snapshot.verdicts(pod, plugins=plugins)
    assert isinstance(said, Verdicts)
    return {name: points["total"] for name, points in said.scores.items()}


def two_nodes() -> Snapshot:
    """A busy node and an idle one, of the same size."""
    sizes: dict[str, Quantity] = {"cpu": "10", "memory": "10Gi", "pods": 10, GPU: 4}
    idle = make_node("idle").capacity(sizes).label(HOST, "idle").zone("a").obj()
    busy = make_node("busy").capacity(sizes).label(HOST, "busy").zone("b").obj()
    taken = make_pod("taken").cpu("5").memory("5Gi").request(GPU, 2).node("busy").obj()
    return Snapshot([idle, busy, taken])


def wanting() -> PodBuilder:
    """A pod that wants a tenth of a node."""
    return make_pod("p").cpu("1").memory("1Gi")
