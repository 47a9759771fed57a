"""Groups below their minimum size, with --enforce-node-group-min-size."""

from __future__ import annotations

from dataclasses import replace

from bayplan.autoscaler.scaleup.orchestrator import decide, scale_ups_of
from bayplan.autoscaler.templates import NodeGroupView
from bayplan.fit import Snapshot
from bayplan.nodegroups import CloudNodeGroup
from tests.autoscaler.cluster_views import FewestNodes, group, view
from tests.builders import make_node, make_pod


def at_least(least: int, name: str = "g", target: int = 0) -> NodeGroupView:
    return replace(group(name, target=target), group=CloudNodeGroup(name, least, 10))


def minimum(
    *groups: NodeGroupView, nodes: int = 0, pods: int = 0, **options: object
) -> dict[str, int]:
    """Return how many nodes are added to groups."""
    snapshot = Snapshot([make_node(f"n{n}").capacity(cpu="1", pods=0).obj() for n in range(nodes)])
    waiting = [make_pod(f"p{n}").cpu("3").obj() for n in range(pods)]
    options = {"enforce_node_group_min_size": True, **options}
    cluster_view = view(snapshot, waiting, *groups, **options)
    found = decide(cluster_view, FewestNodes())
    return {
        one.group: one.to_size - one.from_size
        for one in scale_ups_of(found.new_nodes, cluster_view.groups)
    }


def test_a_group_below_its_minimum_gets_the_nodes_that_it_lacks() -> None:
    assert minimum(at_least(3, target=1)) == {"g": 2}
    assert minimum(at_least(3, target=3)) == {}
    assert minimum(at_least(3), enforce_node_group_min_size=False) == {}


def test_nodes_that_pods_need_count_towards_the_minimum() -> None:
    assert minimum(at_least(3), pods=2) == {"g": 3}
    assert minimum(at_least(1), pods=2) == {"g": 2}


def test_the_minimum_does_not_pass_the_maximum_of_nodes_in_the_cluster() -> None:
    assert minimum(at_least(3), nodes=2, max_nodes_total=4) == {"g": 2}
    assert minimum(at_least(2, "a"), at_least(2, "b"), max_nodes_total=3) == {"a": 2, "b": 1}
    assert minimum(at_least(3), nodes=4, max_nodes_total=4) == {}


def test_the_minimum_does_not_pass_the_maximum_of_a_resource() -> None:
    assert minimum(at_least(3), cores_total="0:9") == {"g": 2}
    assert minimum(at_least(3), nodes=1, cores_total="0:8") == {"g": 1}


def test_a_group_that_may_not_be_scaled_up_stays() -> None:
    before = view(Snapshot([]), [], at_least(2), enforce_node_group_min_size=True)
    skipped = replace(before, skipped_groups={"g": "not healthy"})
    assert not decide(skipped, FewestNodes()).new_nodes
