"""Whatever the cluster: what is bought helps, and nothing is bought twice."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.upcoming_nodes import is_feasible
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision, decide
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.autoscaler.cluster_views import FewestNodes, after, memory, random_view
from tests.samples import examples

pytestmark = pytest.mark.whole


SEEDS = st.integers(0, 2**32)


def _objects(view: ClusterView) -> dict[tuple[str, str], KubeObject]:
    return {(type(obj).__name__, obj.key): obj for obj in view.snapshot.objects()}


@examples(20, many=40)
@given(seed=SEEDS)
@example(seed=1967708)  # pods that fit nodes of an earlier round, once another node is added
def test_every_pod_said_to_be_helped_fits_and_every_pod_is_told_of(seed: int) -> None:
    view = random_view(random.Random(seed))
    before = _objects(view)
    found = decide(view, FewestNodes())
    assert _objects(view) == before
    assert is_feasible(view.snapshot, found.new_nodes)
    helped = [pod.key for one in found.new_nodes for pods in one.pods for pod in pods]
    assert len(helped) == len(_helped(found))
    told = Counter([*helped, *found.fits, *(one.pod for one in found.unschedulable)])
    assert told == Counter(pod.key for pod in view.unschedulable_pods)


@examples(20, many=40)
@given(seed=SEEDS)
def test_bounds_are_kept(seed: int) -> None:
    view = random_view(random.Random(seed))
    found = decide(view, FewestNodes())
    bought: Counter[str] = Counter()
    for one in found.new_nodes:
        assert one.nodes == len(one.pods) > 0
        bought[one.view.id] += one.nodes
    for name, count in bought.items():
        assert count <= view.groups[name].group.max_size
    there, most = len(view.snapshot.cluster.slots), view.options.max_nodes_total
    assert not most or not bought or there + bought.total() <= most


@examples(20, many=40)
@given(seed=SEEDS)
def test_a_second_loop_buys_nothing_more(seed: int) -> None:
    view = random_view(random.Random(seed))
    found = decide(view, FewestNodes())
    again = decide(after(view, found), FewestNodes(), memory(found))
    # Daemons of new nodes that a pod's own rules select count for it, and come all at once: they
    # can take its place away, on a new node or on one which is there. Nobody else needs more.
    lost = _helped(found) - again.fits.keys()
    minding = {pod.key for pod in view.unschedulable_pods if _minds_daemons(pod, view)}
    assert lost <= minding
    assert _helped(again) <= (found.fits.keys() | lost) & minding


def _minds_daemons(pod: Pod, view: ClusterView) -> bool:
    """Whether where a pod may be can hang on the daemons of new nodes."""
    daemons = any(one.template and one.template.daemons for one in view.groups.values())
    return daemons and bool(pod.spec.affinity or pod.spec.topology_spread_constraints)


def _helped(decision: ScaleUpDecision) -> set[str]:
    return {pod.key for one in decision.new_nodes for pods in one.pods for pod in pods}
