"""What is bought for whom: volumes counted, bounds kept, and every pod told why it waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from bayplan.autoscaler.clusterstate.registry import UpcomingNodes
from bayplan.autoscaler.clusterview import ClusterView
from bayplan.autoscaler.estimate.options import ExpanderChoice, ExpanderRequest
from bayplan.autoscaler.options import AutoscalerOptions
from bayplan.autoscaler.scaleup.orchestrator import ScaleUpDecision, decide
from bayplan.fit import Profile, Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.fit.plugins.plugin import Cause
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.kube.storage import SELECTED_NODE
from bayplan.nodegroups import GroupOptions
from tests.autoscaler.cluster_views import DISK, FewestNodes, group, memory, plain_template, view
from tests.builders import make_csinode, make_node, make_pod, make_pvc, make_storage_class

OLD = Profile(gates=FeatureGates({"VolumeLimitScaling": False}))


def bought(decision: ScaleUpDecision) -> dict[str, int]:
    return {one.view.id: one.nodes for one in decision.new_nodes}


def with_volumes(count: int, **fields: str) -> tuple[list[Pod], list[KubeObject]]:
    """Pods with a volume each, whose claims are not bound yet."""
    storage = make_storage_class("disks", DISK).waits().obj()
    claims = [make_pvc(f"data-{n}").size("1Gi").storage_class("disks").obj() for n in range(count)]
    pods = [
        make_pod(f"p-{n}").uid(f"u{n}").cpu(fields.get("cpu", "100m")).claim(f"data-{n}").obj()
        for n in range(count)
    ]
    return pods, [storage, *claims]


def without_volumes(count: int, cpu: str = "1") -> list[Pod]:
    return [make_pod(f"q-{n}").uid(f"q{n}").cpu(cpu).obj() for n in range(count)]


def test_twenty_pods_with_a_volume_each_need_three_nodes_of_eight() -> None:
    pods, storage = with_volumes(20)
    found = decide(view(Snapshot(storage), pods, group("workers")), FewestNodes())
    assert bought(found) == {"workers": 3}
    assert sorted(map(len, found.new_nodes[0].pods)) == [4, 8, 8]
    assert not found.unschedulable


def test_with_the_gate_off_limits_of_new_nodes_are_not_counted() -> None:
    pods, storage = with_volumes(20)
    snapshot = Snapshot(storage, profile=OLD)
    assert bought(decide(view(snapshot, pods, group("workers")), FewestNodes())) == {"workers": 1}


def test_nothing_is_bought_for_what_fits_nodes_that_are_there() -> None:
    pods, storage = with_volumes(8)
    there = [make_node("n").obj(), make_csinode("n").driver(DISK, 8).obj()]
    found = decide(view(Snapshot([*storage, *there]), pods, group("workers")), FewestNodes())
    assert not found.new_nodes
    assert set(found.fits.values()) == {"n"}


def test_nothing_is_bought_for_what_is_on_its_way() -> None:
    pods, storage = with_volumes(20)
    before = view(Snapshot(storage), pods, group("workers", target=2))
    coming = replace(before, upcoming={"workers": UpcomingNodes(instances=2)})
    assert bought(decide(coming, FewestNodes())) == {"workers": 1}


def test_a_node_that_waits_for_its_driver_is_taken_as_promised() -> None:
    pods, storage = with_volumes(8)
    node = make_node("new").taint("node.kubernetes.io/not-ready").obj()
    snapshot = Snapshot([*storage, node])
    before = view(snapshot, pods, group("workers", target=1))
    coming = replace(before, upcoming={"workers": UpcomingNodes(nodes=("new",))})
    found = decide(coming, FewestNodes())
    assert not found.new_nodes
    assert set(found.fits.values()) == {"new"}
    assert bought(decide(before, FewestNodes())) == {"workers": 1}


def test_a_driver_that_reports_less_than_promised_corrects_what_is_bought() -> None:
    pods, storage = with_volumes(8)
    there = [make_node("new").obj(), make_csinode("new").driver(DISK, 5).obj()]
    before = view(Snapshot([*storage, *there]), pods, group("workers", target=1))
    coming = replace(before, upcoming={"workers": UpcomingNodes(nodes=("new",))})
    found = decide(coming, FewestNodes())
    assert len(found.fits) == 5
    assert bought(found) == {"workers": 1}


def test_who_has_a_node_selected_gets_its_room_and_others_are_bought_for() -> None:
    pods, (storage, first, second) = with_volumes(2)
    second.metadata.annotations[SELECTED_NODE] = "n"
    there = [make_node("n").obj(), make_csinode("n").driver(DISK, 1).obj()]
    snapshot = Snapshot([storage, first, second, *there])
    found = decide(view(snapshot, pods, group("workers")), FewestNodes())
    assert found.fits == {"default/p-1": "n"}
    assert bought(found) == {"workers": 1}
    assert not found.unschedulable


def test_who_has_a_node_selected_that_is_gone_is_told_so() -> None:
    pods, (storage, claim) = with_volumes(1)
    claim.metadata.annotations[SELECTED_NODE] = "gone"
    found = decide(view(Snapshot([storage, claim]), pods, group("workers")), FewestNodes())
    assert [one.pod for one in found.unschedulable] == ["default/p-0"]
    assert not found.new_nodes


def test_pods_that_one_group_cannot_help_are_bought_for_in_the_same_loop() -> None:
    small = make_pod("s").uid("s").cpu("1").node_selector(size="small").obj()
    large = make_pod("l").uid("l").cpu("1").node_selector(size="large").obj()
    groups = [
        group(size, replace_labels(plain_template(), size=size), most=5)
        for size in ("small", "large")
    ]
    found = decide(view(Snapshot(), [small, large], *groups), FewestNodes())
    assert bought(found) == {"small": 1, "large": 1}


def replace_labels(template: NodeTemplate, **labels: str) -> NodeTemplate:
    node = make_node("template").capacity(cpu="4", memory="16Gi").labels(labels).obj()
    return replace(template, node=node)


@pytest.mark.parametrize(("most", "wanted"), [(0, 5), (3, 3), (1, 1)])
def test_the_cluster_never_has_more_nodes_than_it_may(most: int, wanted: int) -> None:
    pods = without_volumes(20)
    found = decide(view(Snapshot(), pods, group("g"), max_nodes_total=most), FewestNodes())
    assert bought(found) == {"g": wanted}
    assert len(found.unschedulable) == 20 - 4 * wanted
    if found.unschedulable:
        assert found.unschedulable[0].by_group == {"g": ("max nodes in the cluster reached",)}


def test_cores_of_the_cluster_are_bounded() -> None:
    pods = without_volumes(20)
    there = make_node("n").taint("no").obj()
    bounded = view(Snapshot([there]), pods, group("g"), cores_total="0:13")
    assert bought(decide(bounded, FewestNodes())) == {"g": 2}
    full = replace(bounded, options=replace(bounded.options, cores_total="0:7"))
    found = decide(full, FewestNodes())
    assert found.unschedulable[0].by_group == {"g": ("max cluster cpu limit reached",)}


def test_a_group_that_is_all_or_nothing_is_bought_whole() -> None:
    wishes = GroupOptions(zero_or_max_node_scaling=True)
    whole = group("tpu", most=6, options=wishes)
    found = decide(view(Snapshot(), without_volumes(2), whole), FewestNodes())
    assert bought(found) == {"tpu": 6}
    assert len(found.new_nodes[0].pods) == 6
    too_many = view(Snapshot(), without_volumes(2), whole, max_nodes_total=5)
    assert not decide(too_many, FewestNodes()).new_nodes


def test_new_nodes_are_balanced_over_groups_that_are_alike() -> None:
    groups = [
        group("a", plain_template(zone="a"), target=4),
        group("b", plain_template(zone="b"), target=1),
        group("c", plain_template(zone="c", limit=4), target=0),
    ]
    pods = without_volumes(20)
    found = decide(
        view(Snapshot(), pods, *groups, balance_similar_node_groups=True), FixedGroupExpander("a")
    )
    assert bought(found) == {"a": 1, "b": 4}
    assert not found.unschedulable


def test_balance_leaves_out_a_zone_that_the_volumes_are_not_in() -> None:
    pods = [make_pod(f"z-{n}").uid(f"z{n}").cpu("2").node_selector(zone("a")) for n in range(4)]
    groups = [group(name, plain_template(zone=name)) for name in ("a", "b")]
    waiting = [pod.obj() for pod in pods]
    found = decide(
        view(Snapshot(), waiting, *groups, balance_similar_node_groups=True),
        FixedGroupExpander("a"),
    )
    assert bought(found) == {"a": 2}


def zone(name: str) -> dict[str, str]:
    return {"topology.kubernetes.io/zone": name}


class FixedGroupExpander(FewestNodes):
    """An expander that likes one group."""

    def __init__(self, name: str) -> None:
        self._name = name

    def choose(self, request: ExpanderRequest) -> ExpanderChoice:
        liked = [one for one in request.options if one.view.id == self._name]
        return ExpanderChoice([liked[0].new_nodes()])


def test_every_group_says_why_it_does_not_help() -> None:
    pods, storage = with_volumes(1, cpu="100m")
    big = make_pod("big").uid("big").cpu("64").obj()
    groups = [group("none", plain_template(limit=0)), group("off"), group("full", most=0)]
    asked = view(Snapshot(storage), [*pods, big], *groups)
    found = decide(replace(asked, skipped_groups={"off": "in backoff"}), FewestNodes())
    told = {one.pod: one for one in found.unschedulable}
    assert told["default/p-0"].by_group == {
        "none": ("node(s) exceed max volume count",),
        "off": ("in backoff",),
        "full": ("max node group size reached",),
    }
    assert told["default/p-0"].details["none"] == (f"{DISK}: 0 of 0 in use (limit from CSINode)",)
    assert told["default/big"].by_group["off"] == ("Insufficient cpu",)
    assert (told["default/big"].never, told["default/p-0"].never) == (True, False)


def test_pods_are_counted_by_why_they_wait() -> None:
    pods, storage = with_volumes(3)
    there = [make_node("n").obj(), make_csinode("n").driver(DISK, 1).obj()]
    big = make_pod("big").uid("big").cpu("64").obj()
    found = decide(view(Snapshot([*storage, *there]), [*pods, big], group("g")), FewestNodes())
    assert found.causes == {
        (Cause.UPCOMING, ""): 1,
        (Cause.VOLUMES, DISK): 2,
        (Cause.RESOURCES, ""): 1,
    }


@pytest.mark.parametrize(("pinned", "spare"), [("a", "b"), ("b", "a")])
def test_why_a_pod_waits_does_not_depend_on_the_names_of_nodes(pinned: str, spare: str) -> None:
    (pod,), storage = with_volumes(1, cpu="1")
    pod.spec.node_selector = {"disks": "none"}
    nodes = [
        make_node(name).capacity(cpu="1", memory="8Gi", pods=9).labels(labels).obj()
        for name, labels in ((pinned, {"disks": "none"}), (spare, {}))
    ]
    there = [*storage, *nodes, make_csinode(pinned).driver(DISK, 0).obj()]
    found = decide(view(Snapshot(there), [*without_volumes(1), pod]), FewestNodes())
    assert set(found.fits) == {"default/q-0"}
    assert [(one.cause, one.driver) for one in found.unschedulable] == [(Cause.VOLUMES, DISK)]
    assert found.causes == {(Cause.UPCOMING, ""): 1, (Cause.VOLUMES, DISK): 1}


def test_gate_on_off_and_on_again_on_the_same_cluster() -> None:
    pods, storage = with_volumes(20)

    def nodes(profile: Profile) -> int:
        found = decide(view(Snapshot(storage, profile=profile), pods, group("g")), FewestNodes())
        return bought(found)["g"]

    assert [nodes(profile) for profile in (Profile(), OLD, Profile())] == [3, 1, 3]


def test_what_was_bought_for_a_pod_is_forgotten_with_it() -> None:
    pods, storage = with_volumes(20)
    asked: ClusterView = view(Snapshot(storage), pods, group("g"))
    kept = memory(decide(asked, FewestNodes()))
    assert {step.number for step in kept.steps} == {0, 1, 2}
    waiting = {step.uid: None for step in kept.steps if step.number != 1}
    left = kept.still_pending({"g": 2}, waiting)
    assert {step.number for step in left.steps} == {0, 1}
    assert not kept.still_pending({}, waiting).steps


def test_a_pod_that_is_planned_anew_is_not_meant_to_go_where_it_was() -> None:
    groups = group("a"), group("b", most=1)
    there = view(Snapshot(()), without_volumes(2, cpu="3"), *groups)
    first = decide(replace(there, skipped_groups={"b": "rests"}), FewestNodes())
    assert bought(first) == {"a": 2}
    one = {"a": UpcomingNodes(instances=1)}
    second = decide(
        replace(there, skipped_groups={"a": "rests"}, upcoming=one), FewestNodes(), memory(first)
    )
    assert bought(second) == {"b": 1}
    remembered = memory(first).with_new_nodes({"a": 1}, second.new_nodes)
    both = {"a": UpcomingNodes(instances=2), "b": UpcomingNodes(instances=1)}
    third = decide(replace(there, upcoming=both), FewestNodes(), remembered)
    assert not third.new_nodes
    assert sorted(name.rsplit("-", 1)[0] for name in third.fits.values()) == [
        "template-node-for-a",
        "template-node-for-b",
    ]


def causes(before: ClusterView) -> dict[tuple[str, str], int]:
    """Return the number of pods that no scale-up helps, by cause and driver."""
    found = decide(before, FewestNodes()).unschedulable
    return Counter((one.cause.value, one.driver) for one in found)


def test_the_cause_has_its_driver_in_a_cluster_without_nodes() -> None:
    pods, storage = with_volumes(10)
    none_left = view(Snapshot(storage), pods, group("w", plain_template(limit=0)))
    assert causes(none_left) == {("volumes", DISK): 10}
    too_few = view(Snapshot(storage), pods, group("w", most=1))
    assert causes(too_few) == {("volumes", DISK): 2}
    assert causes(replace(too_few, options=AutoscalerOptions(max_nodes_total=5))) == causes(too_few)


def test_pods_that_a_new_node_would_take_wait_for_nodes() -> None:
    pods, storage = with_volumes(2)
    assert causes(view(Snapshot(storage), pods, group("w", most=0))) == {("nodes", ""): 2}
