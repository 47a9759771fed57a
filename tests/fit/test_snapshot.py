"""What a snapshot promises beyond kube-scheduler's recorded decisions."""

from __future__ import annotations

import pytest

from bayplan.fit import Decision, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import ContainerStatus, Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_service,
    make_storage_class,
    node_term,
    selector,
)

DRIVER = "ebs.csi.aws.com"
HOST = "kubernetes.io/hostname"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


def node(name: str, cpu: str = "4") -> Node:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=10).label(HOST, name).obj()


def replica(index: int) -> Pod:
    """One of a StatefulSet."""
    pod = make_pod(f"db-{index}").cpu("100m").labels(app="db").claim(f"data-db-{index}")
    return pod.label("statefulset.kubernetes.io/pod-name", f"db-{index}").obj()


def storage(replicas: int) -> list[KubeObject]:
    claims = [make_pvc(f"data-db-{index}").storage_class("fast").obj() for index in range(replicas)]
    return [make_storage_class("fast", DRIVER).waits().obj(), *claims]


def test_replicas_of_a_stateful_set_are_one_shape() -> None:
    csinode = make_csinode("n1").driver(DRIVER, 8).obj()
    snapshot = Snapshot([node("n1"), csinode, *storage(2)])
    assert snapshot.evaluation(replica(0)) is snapshot.evaluation(replica(1))


def test_replicas_are_told_apart_once_a_selector_does() -> None:
    csinode = make_csinode("n1").driver(DRIVER, 8).obj()
    snapshot = Snapshot([node("n1"), csinode, *storage(2)])
    service = make_service("db-0").obj()
    service.spec.selector = {"statefulset.kubernetes.io/pod-name": "db-0"}
    snapshot.put(service)
    assert snapshot.evaluation(replica(0)) is not snapshot.evaluation(replica(1))


def test_volumes_are_placed_up_to_the_limit_and_no_further() -> None:
    csinodes = [make_csinode(name).driver(DRIVER, 2).obj() for name in ("n1", "n2")]
    snapshot = Snapshot([node("n1"), node("n2"), *csinodes, *storage(5)])
    placed = [snapshot.place(replica(index)).node for index in range(5)]
    assert sorted(name for name in placed if name) == ["n1", "n1", "n2", "n2"]
    assert placed[4] is None


def test_a_claim_that_waits_is_promised_to_the_node_of_its_first_pod() -> None:
    csinodes = [make_csinode(name).driver(DRIVER, 9).obj() for name in ("n1", "n2")]
    snapshot = Snapshot([node("n1"), node("n2"), *csinodes, *storage(1)])
    snapshot.assume(replica(0), snapshot.decision_on(replica(0), "n2"))
    claim = snapshot.get(PersistentVolumeClaim, "default/data-db-0")
    assert claim is not None
    assert claim.metadata.annotations[SELECTED_NODE] == "n2"
    sharing = make_pod("reader").cpu("100m").claim("data-db-0").obj()
    assert snapshot.decide(sharing).node == "n2"


def test_an_open_volume_is_promised_to_one_claim_only() -> None:
    local = make_pv("local").size("10Gi").storage_class("manual")
    local.node_affinity(node_term(HOST, "In", "n1"))
    claims = [make_pvc(name).storage_class("manual").size("5Gi").obj() for name in ("a", "b")]
    manual = make_storage_class("manual", "kubernetes.io/no-provisioner").waits().obj()
    snapshot = Snapshot([node("n1"), manual, local.obj(), *claims])
    assert snapshot.place(make_pod("first").claim("a").obj()).node == "n1"
    assert snapshot.place(make_pod("second").claim("b").obj()).node is None
    taken = snapshot.get(PersistentVolume, "local")
    assert isinstance(taken, PersistentVolume)
    assert taken.spec.claim_ref is not None
    assert taken.spec.claim_ref.name == "a"


def test_a_template_node_counts_only_inside_its_fork() -> None:
    snapshot = Snapshot([node("n1", cpu="1")])
    large = make_pod("large").cpu("3").obj()
    with snapshot.fork():
        snapshot.put(node("template"))
        snapshot.put(make_csinode("template").driver(DRIVER, 8).obj())
        assert snapshot.decide(large).node == "template"
    assert snapshot.decide(large).node is None
    assert [one.name for one in snapshot.objects()] == ["n1"]


def test_an_inner_fork_that_is_kept_can_still_be_undone_outside() -> None:
    snapshot = Snapshot([node("n1", cpu="1")])
    with snapshot.fork():
        with snapshot.fork():
            snapshot.put(node("n2"))
            snapshot.commit()
        assert snapshot.get(Node, "n2") is not None
    assert snapshot.get(Node, "n2") is None


def test_many_template_nodes_fill_one_by_one() -> None:
    snapshot = Snapshot([node("n1", cpu="1")])
    pods = [make_pod(f"p{index}").cpu("3").obj() for index in range(40)]
    bought = 0
    with snapshot.fork():
        for pod in pods:
            if snapshot.place(pod).node is None:
                bought += 1
                snapshot.put(node(f"template-{bought}"))
                assert snapshot.place(pod).node == f"template-{bought}"
    assert bought == 40
    assert len(snapshot.cluster.slots) == 1


@pytest.mark.parametrize("amount", ["9223372036854775807", "8Ei", "1e30"])
def test_no_sum_of_huge_requests_wraps_around_to_fit(amount: str) -> None:
    snapshot = Snapshot([make_node("n1").capacity(cpu="4", memory=amount, pods=100).obj()])
    for index in range(8):
        snapshot.assume(make_pod(f"huge-{index}").memory(amount).obj(), Decision("n1"))
    assert snapshot.decide(make_pod("next").memory("1Gi").obj()).node is None


def test_equal_nodes_are_chosen_between_alike_however_the_snapshot_was_built() -> None:
    nodes = [node(f"n{index}") for index in range(20)]
    pod = make_pod("p").cpu("1").obj()
    chosen = {Snapshot(order).decide(pod).node for order in (nodes, nodes[::-1], nodes[7:] + nodes)}
    assert len(chosen) == 1


def test_a_pod_on_an_unknown_node_counts_once_the_node_is_known() -> None:
    early = make_pod("early").cpu("3").node("n1").obj()
    snapshot = Snapshot([early])
    snapshot.put(node("n1"))
    assert snapshot.decide(make_pod("late").cpu("2").obj()).node is None


def test_a_pod_that_has_ended_takes_no_room() -> None:
    ended = make_pod("ended").cpu("4").node("n1").phase("Succeeded").obj()
    snapshot = Snapshot([node("n1"), ended])
    assert snapshot.decide(make_pod("p").cpu("4").obj()).node == "n1"


def test_an_anti_affine_group_takes_one_node_each() -> None:
    snapshot = Snapshot([node(f"n{index}") for index in range(3)])
    group = [
        make_pod(f"p{index}").cpu("100m").labels(app="x").anti_affinity(HOST, selector(app="x"))
        for index in range(4)
    ]
    placed = [snapshot.place(pod.obj()).node for pod in group]
    assert sorted(name for name in placed if name) == ["n0", "n1", "n2"]
    assert placed[3] is None


def test_an_infeasible_wish_is_told_apart_from_one_that_waits() -> None:
    def resized(name: str, reason: str) -> Pod:
        pod = make_pod(name).cpu("3").node("n1").condition("PodResizePending", reason=reason).obj()
        container = pod.spec.containers[0].name
        allocated = ContainerStatus(name=container, allocated_resources={"cpu": "1"})
        pod.status.container_statuses = [allocated]
        return pod

    waits, infeasible = resized("waits", "Deferred"), resized("infeasible", "Infeasible")
    snapshot = Snapshot([node("n1"), waits, infeasible])
    assert snapshot.decide(make_pod("last").cpu("1").obj()).node is None
    snapshot.delete(Pod, waits.key)
    assert snapshot.decide(make_pod("next").cpu("3").obj()).node == "n1"


def test_two_claims_of_one_volume_need_one_place_and_of_two_volumes_two() -> None:
    def bound(index: int, handle: str) -> list[KubeObject]:
        volume = make_pv(f"v{index}").storage_class("fast").csi(DRIVER, handle)
        claim = make_pvc(f"c{index}").storage_class("fast").volume(f"v{index}")
        return [volume.bound_to(f"c{index}").obj(), claim.obj()]

    objects = [*bound(0, "one"), *bound(1, "one"), *bound(2, "two")]
    limit = make_csinode("n1").driver(DRIVER, 1).obj()
    snapshot = Snapshot([node("n1"), limit, *objects])
    assert snapshot.decide(make_pod("one").claim("c0").claim("c1").obj()).node == "n1"
    assert snapshot.decide(make_pod("two").claim("c0").claim("c2").obj()).node is None


def test_a_claim_that_grows_is_held_against_open_volumes_again() -> None:
    static = make_storage_class("static", "kubernetes.io/no-provisioner").waits().obj()
    volume = make_pv("v").size("5Gi").storage_class("static").csi(DRIVER, "h").obj()
    volume.status.phase = "Available"
    claim = make_pvc("c").storage_class("static")
    snapshot = Snapshot([node("n1"), static, volume, claim.size("1Gi").obj()])
    snapshot.put(make_csinode("n1").driver(DRIVER, 8).obj())
    pod = make_pod("p").claim("c").obj()
    assert snapshot.decide(pod).node == "n1"
    snapshot.put(make_pvc("c").storage_class("static").size("9Gi").obj())
    assert snapshot.decide(pod).node is None


def test_a_claims_own_volume_is_looked_at_again_once_it_changes() -> None:
    static = make_storage_class("static", "kubernetes.io/no-provisioner").waits().obj()
    claim = make_pvc("c").storage_class("static").size("1Gi").obj()
    csinode = make_csinode("n1").driver(DRIVER, 8).obj()

    def own(host: str) -> PersistentVolume:
        volume = make_pv("v").size("5Gi").storage_class("static").bound_to("c").csi(DRIVER, "h")
        return volume.node_affinity(node_term(HOST, "In", host)).obj()

    snapshot = Snapshot([node("n1"), csinode, static, claim, own("n1")])
    pod = make_pod("p").claim("c").obj()
    assert snapshot.decide(pod).node == "n1"
    snapshot.put(own("n2"))
    assert snapshot.decide(pod).node is None


def test_a_node_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="there is no node 'nowhere'"):
        Snapshot().refusal(make_pod("p").obj(), "nowhere")
