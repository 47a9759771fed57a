"""What an explanation says: the line, the node, the reasons, and how pods stand."""

from __future__ import annotations

from bayplan.fit import Decision, Snapshot
from bayplan.fit.explanation import PodState, explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_service,
    make_storage_class,
    name_term,
    node_term,
)

EBS = "ebs.csi.aws.com"


def big(name: str) -> KubeObject:
    return make_node(name).capacity(cpu="4", memory="8Gi", pods="10").obj()


def small(name: str) -> KubeObject:
    return make_node(name).capacity(cpu="1", memory="8Gi", pods="10").obj()


def full_of_volumes(name: str) -> list[KubeObject]:
    return [
        make_node(name).capacity(cpu="9", memory="8Gi", pods="10").obj(),
        make_csinode(name).driver(EBS, 0).obj(),
    ]


def test_the_line_counts_reasons_as_kube_scheduler_does() -> None:
    objects = [
        small("n1"),
        small("n2"),
        small("n3"),
        *full_of_volumes("n4"),
        *full_of_volumes("n5"),
    ]
    objects += [
        make_storage_class("fast", EBS).waits().obj(),
        make_pvc("data").storage_class("fast").obj(),
    ]
    pod = make_pod("p").cpu("2").claim("data").never_preempts().obj()
    said = explain(Snapshot(objects), pod).message
    assert said == (
        "0/5 nodes are available: 2 node(s) exceed max volume count, 3 Insufficient cpu."
        " preemption: not eligible due to preemptionPolicy=Never."
    )


def test_preemption_that_would_not_help_is_part_of_the_line() -> None:
    said = explain(Snapshot([small("n1")]), make_pod("p").cpu("2").obj()).message
    assert said == (
        "0/1 nodes are available: 1 Insufficient cpu."
        " preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )


def test_nodes_that_affinity_does_not_name_count_as_not_asked() -> None:
    pod = make_pod("p").cpu("2").node_affinity(name_term("n1")).never_preempts().obj()
    said = explain(Snapshot([small("n1"), big("n2"), big("n3")]), pod).message
    assert said.startswith(
        "0/3 nodes are available: 1 Insufficient cpu,"
        " 2 node(s) didn't satisfy plugin(s) [NodeAffinity]. "
    )


def test_a_refusal_before_any_node_is_the_whole_line() -> None:
    pod = make_pod("p").claim("gone").never_preempts().obj()
    found = explain(Snapshot([big("n1")]), pod)
    assert found.message.startswith(
        '0/1 nodes are available: persistentvolumeclaim "gone" not found. preemption: '
    )
    assert found.refused_before is not None
    assert found.nodes == ()


def test_a_cluster_without_nodes_says_so() -> None:
    found = explain(Snapshot(), make_pod("p").obj())
    assert found.message == "no nodes available to schedule pods"
    assert not found.fits


def test_a_pod_that_fits_is_told_its_node_and_why() -> None:
    found = explain(Snapshot([small("n1"), big("n2")]), make_pod("p").cpu("500m").obj())
    assert (found.fits, found.node) == (True, "n2")
    assert "next is n1" in found.choice_reason
    assert [answer.name for answer in found.nodes] == ["n2", "n1"]
    assert found.nodes[0].scores["total"] > found.nodes[1].scores["total"]


def test_equal_nodes_are_decided_by_their_names_whatever_their_order() -> None:
    pod = make_pod("p").obj()
    one = explain(Snapshot([big("n1"), big("n2")]), pod)
    other = explain(Snapshot([big("n2"), big("n1")]), pod)
    assert one.node == other.node
    assert "a hash of the nodes' names decides" in one.choice_reason


def test_the_only_node_needs_no_comparison() -> None:
    found = explain(Snapshot([big("n1")]), make_pod("p").obj())
    assert found.choice_reason == "it is the only node that fits"


def test_details_give_the_numbers_behind_a_reason() -> None:
    tainted = make_node("n2").capacity(cpu="4", memory="8Gi", pods="10").taint("team", "a").obj()
    found = explain(Snapshot([small("n1"), tainted]), make_pod("p").cpu("1500m").obj())
    details = {answer.name: answer.details for answer in found.nodes}
    assert details == {
        "n1": ("wants 1.5 CPUs, 1 free",),
        "n2": ("taint team=a:NoSchedule",),
    }


def test_details_name_the_volume_that_is_elsewhere() -> None:
    pv = make_pv("pv").csi(EBS, "v").bound_to("c").node_affinity(node_term("rack", "In", "r1"))
    zoned = make_pv("zoned").csi(EBS, "w").bound_to("z").label("topology.kubernetes.io/zone", "a")
    objects = [
        make_node("n").zone("b").obj(),
        make_csinode("n").driver(EBS).obj(),
        pv.obj(),
        make_pvc("c").volume("pv").obj(),
        zoned.obj(),
        make_pvc("z").volume("zoned").obj(),
    ]
    snapshot = Snapshot(objects)
    (here,) = explain(snapshot, make_pod("p").claim("c").obj(), with_fixes=False).nodes
    assert here.details == (
        "claim default/c is bound to volume pv, which can be reached only where 'rack In [r1]'",
    )
    (there,) = explain(snapshot, make_pod("q").claim("z").obj(), with_fixes=False).nodes
    assert there.details == (
        "claim default/z is bound to volume zoned, which has label topology.kubernetes.io/zone=a",
    )


def test_details_name_who_has_the_claim() -> None:
    objects = [
        make_node("n").obj(),
        make_csinode("n").driver(EBS).obj(),
        make_pv("pv").csi(EBS, "v").bound_to("c").obj(),
        make_pvc("c").access("ReadWriteOncePod").volume("pv").obj(),
        make_pod("holder").claim("c").node("n").obj(),
    ]
    (here,) = explain(Snapshot(objects), make_pod("p").claim("c").obj(), with_fixes=False).nodes
    assert here.details == ("pod default/holder has claim default/c for itself",)


def test_details_name_the_nodes_that_affinity_names() -> None:
    pod = make_pod("p").node_affinity(name_term("n9")).obj()
    (here,) = explain(Snapshot([big("n1")]), pod, with_fixes=False).nodes
    assert here.details == ("required affinity names n9",)


def test_a_gated_pod_is_not_looked_at_but_told_where_it_would_go() -> None:
    found = explain(Snapshot([big("n1")]), make_pod("p").gate("quota").gate("team").obj())
    assert found.state is PodState.GATED
    assert found.message == "waiting for scheduling gates: [quota team]"
    assert (found.fits, found.node) == (False, "n1")


def test_a_placed_pod_is_where_it_is() -> None:
    snapshot = Snapshot([big("n1"), make_pod("p").node("n1").obj()])
    found = explain(snapshot, make_pod("p").node("n1").obj())
    assert (found.state, found.node, found.fits) == (PodState.PLACED, "n1", True)


def test_a_pod_on_an_unknown_node_is_told_so() -> None:
    found = explain(Snapshot([big("n1")]), make_pod("p").node("gone").obj())
    assert "not in the snapshot" in found.message


def test_an_assumed_pod_is_placed() -> None:
    snapshot, pod = Snapshot([big("n1")]), make_pod("p").obj()
    snapshot.assume(pod, Decision("n1"))
    assert explain(snapshot, pod).state is PodState.PLACED


def test_a_pod_that_has_ended_needs_no_node() -> None:
    found = explain(Snapshot([small("n1")]), make_pod("p").cpu("9").phase("Succeeded").obj())
    assert (found.state, found.fits, found.node) == (PodState.ENDED, True, None)


def test_a_pod_that_is_being_deleted_will_not_be_placed() -> None:
    found = explain(Snapshot([big("n1")]), make_pod("p").terminating().obj())
    assert (found.state, found.fits) == (PodState.TERMINATING, False)


def test_preemption_names_its_victims() -> None:
    victim = make_pod("low").cpu("3").priority(1).node("n1").obj()
    found = explain(Snapshot([big("n1"), victim]), make_pod("high").cpu("3").priority(9).obj())
    assert found.preemption is not None
    assert [pod.key for pod in found.preemption.victims] == ["default/low"]
    assert found.message == "0/1 nodes are available: 1 Insufficient cpu."


def test_explaining_changes_nothing() -> None:
    victim = make_pod("low").cpu("3").priority(1).node("n1").obj()
    snapshot = Snapshot([big("n1"), small("n2"), victim, make_service("s", app="x").obj()])
    before = {obj.key for obj in snapshot.objects()}, snapshot.decide(make_pod("q").cpu("1").obj())
    explain(snapshot, make_pod("high").cpu("3").priority(9).obj())
    after = {obj.key for obj in snapshot.objects()}, snapshot.decide(make_pod("q").cpu("1").obj())
    assert before == after


def test_fixes_are_not_looked_for_unless_wanted() -> None:
    snapshot = Snapshot([big("n1")])
    assert explain(snapshot, make_pod("p").cpu("5").obj(), with_fixes=False).fixes == ()
    assert explain(snapshot, make_pod("p").cpu("5").obj()).fixes
