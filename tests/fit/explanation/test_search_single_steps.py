"""Fixes that are easily missed, one small cluster each; every fix on offer is tried."""

from __future__ import annotations

from bayplan.fit import Snapshot
from bayplan.fit.explanation import FixKind, Risk, explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    make_csinode,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    node_term,
    selector,
)
from tests.fit.explanation.offered_fixes import EBS, HOSTNAME, ZONE, fixes, node, one


def test_tolerated_taints_hide_no_fix_behind_nodes_that_are_not_tainted() -> None:
    objects: list[KubeObject] = [node(f"cpu-{index}").obj() for index in range(4)]
    gpu = node("gpu").taint("nvidia.com/gpu").label("gpu-model", "a100")
    objects.append(gpu.capacity({"nvidia.com/gpu": "8"}).obj())
    pod = make_pod("p").toleration("nvidia.com/gpu").node_selector({"gpu-model": "h100"})
    fix = fixes(objects, pod.request("nvidia.com/gpu", "1"))[0]
    assert fix.summary == "Change nodeSelector gpu-model from h100 to a100; the pod then fits gpu."


def test_the_fix_with_the_smallest_change_is_found_among_many_nodes() -> None:
    objects: list[KubeObject] = [
        node(f"n{index}", cpu="2").label("disk", "hdd").obj() for index in range(100)
    ]
    objects.append(node("nearest", cpu="3900m").label("disk", "ssd").obj())
    fix = fixes(objects, make_pod("p").cpu("4").node_selector(disk="ssd"))[0]
    assert fix.summary == "Request 0.1 CPUs less: 3.9 instead of 4; the pod then fits nearest."


def test_of_two_smaller_requests_only_the_one_that_asks_for_less_is_offered() -> None:
    objects = [node("n1", cpu="3887m").obj(), node("n2", cpu="3879m").obj()]
    found = fixes(objects, make_pod("p").cpu("4"))
    less = [fix for fix in found if fix.kinds == (FixKind.SMALLER_REQUEST,)]
    assert [fix.node for fix in less] == ["n1"]


def test_large_numbers_are_written_as_people_write_them() -> None:
    pod = make_pod("p").cpu("200").memory("20Gi")
    fix = one(fixes([node("n", cpu="16").obj()], pod), FixKind.SMALLER_REQUEST)
    assert fix.summary == (
        "Request 184 CPUs less: 16 instead of 200 and 12 GiB of memory less: 8 GiB instead of"
        " 20 GiB; the pod then fits n."
    )


def test_a_step_that_is_not_needed_where_the_pod_goes_is_dropped() -> None:
    objects = [node("a").taint("team", "x").label("disk", "hdd").obj()]
    objects.append(node("b").label("disk", "hdd").obj())
    pod = make_pod("p").node_selector(disk="ssd").affinity(HOSTNAME, selector(app="nobody"))
    for fix in fixes(objects, pod):
        assert FixKind.TOLERATION not in fix.kinds, fix.summary


def test_the_one_pod_that_blocks_by_its_anti_affinity_is_moved_or_deleted() -> None:
    loner = make_pod("loner").labels(app="db").anti_affinity(ZONE, selector(app="web")).node("a2")
    objects = [node("a1").zone("a").obj(), node("a2").zone("a").obj(), loner.obj()]
    objects.append(node("b").zone("b").taint("team", "x").obj())
    web = make_pod("web").labels(app="web")
    stopped = one(fixes(objects, web), FixKind.STOP_POD)
    assert stopped.summary.startswith(
        f"Delete pod default/loner (it keeps this pod away over {ZONE})"
    )
    objects[-1] = node("b").zone("b").label("only", "others").obj()
    web.node_selector(HOSTNAME_OF_A)
    objects[0] = node("a1").zone("a").label("is", "a").obj()
    moved = one(fixes(objects, web), FixKind.MOVE_POD)
    assert "Move pod default/loner from node a2 to node b" in moved.summary
    assert moved.steps[0].risks == (Risk.EVICTS,)


HOSTNAME_OF_A = {"is": "a"}


def test_the_pod_that_makes_a_domain_too_full_is_moved() -> None:
    here = make_pod("x").labels(app="w").node("a")
    objects = [node("a").zone("a").obj(), node("b").zone("b").obj(), here.obj()]
    pod = make_pod("p").labels(app="w").spread(ZONE).node_selector({ZONE: "a"})
    pod = pod.spread(ZONE, node_affinity_policy="Ignore")
    found = fixes(objects, pod)
    assert "Move pod default/x from node a to node b" in one(found, FixKind.MOVE_POD).summary


def test_a_node_in_the_zone_of_a_bound_volume() -> None:
    volume = make_pv("pv").csi(EBS, "v").bound_to("c").node_affinity(node_term(ZONE, "In", "c"))
    objects: list[KubeObject] = [volume.obj(), make_pvc("c").volume("pv").obj()]
    objects += [node("n").zone("a").obj(), make_csinode("n").driver(EBS, 4).obj()]
    fix = one(fixes(objects, make_pod("p").claim("c")), FixKind.ADD_NODE)
    assert fix.summary == (
        "Add one node like n (a), but in c, where its volumes are; the pod then fits n-more."
    )


def test_no_node_in_a_zone_helps_a_volume_of_one_host() -> None:
    here = node_term(HOSTNAME, "In", "gone")
    objects: list[KubeObject] = [make_pv("pv").bound_to("c").node_affinity(here).obj()]
    objects += [make_pvc("c").volume("pv").obj(), node("n").label(HOSTNAME, "n").zone("a").obj()]
    explanation = explain(Snapshot(objects), make_pod("p").claim("c").obj())
    assert explanation.fixes == ()
    assert explanation.search is not None
    assert explanation.search.nearest is not None
    assert explanation.search.nearest.node == "n"
    assert explanation.search.summary == (
        "No fix of up to 3 steps was found. 1 nodes were evaluated, the nearest 1 tried, and 1"
        " kinds of new nodes. Nearest is n: node(s) didn't match PersistentVolume's node affinity"
        " (claim default/c is bound to volume pv, which can be reached only where"
        " 'kubernetes.io/hostname In [gone]')."
    )


def test_a_bigger_node_where_none_is_large_enough() -> None:
    daemon = make_pod("d").cpu("500m").owner("DaemonSet", "d").node("n")
    objects = [node("n").label("eks.amazonaws.com/nodegroup", "workers").obj(), daemon.obj()]
    pod = make_pod("p").cpu("64").memory("100Gi").anti_affinity(HOSTNAME, selector(app="x"))
    fix = one(fixes(objects, pod), FixKind.ADD_BIGGER_NODE)
    assert fix.summary == (
        "Add one node like n (group workers), but bigger: with 65 CPUs and 100 GiB of memory;"
        " the pod then fits n-more."
    )
    assert fix.steps[0].risks == (Risk.COSTS, Risk.NEEDS_MANUAL_STEPS)


def test_a_node_that_lacks_a_spreading_key_is_labelled() -> None:
    objects = [node("a").zone("a").taint("team", "x").obj(), node("n").obj()]
    found = fixes(objects, make_pod("p").labels(app="w").spread(ZONE))
    fix = one(found, FixKind.LABEL_NODE)
    assert fix.summary == f"Set topology label {ZONE}=a on node n; the pod then fits n."
    assert fix.steps[0].command == f"kubectl label node n {ZONE}=a --overwrite"


def test_tainted_nodes_are_left_out_of_spreading() -> None:
    objects: list[KubeObject] = [node("a").zone("a").obj()]
    objects += [
        node("b").zone("b").taint("team", "x").obj(),
        make_pod("x").labels(app="w").node("a").obj(),
    ]
    fix = fixes(objects, make_pod("p").labels(app="w").spread(ZONE))[0]
    assert fix.summary == ("Tolerate taint team=x:NoSchedule; the pod then fits b.")
    honors = one(fixes(objects, make_pod("p").labels(app="w").spread(ZONE)), FixKind.HONOR_TAINTS)
    assert "(nodeTaintsPolicy: Honor)" in honors.summary
    assert honors.steps[0].risks == (Risk.UNBALANCES,)


def test_more_domains_than_there_are_are_not_asked_for() -> None:
    objects = [node("a").zone("a").obj(), make_pod("x").labels(app="w").node("a").obj()]
    pod = make_pod("p").labels(app="w").spread(ZONE, min_domains=3)
    found = fixes(objects, pod)
    assert f"Lower minDomains over {ZONE} from 3 to 1; the pod then fits a." in [
        fix.summary for fix in found
    ]


def test_a_volume_that_a_claim_lost_is_created() -> None:
    objects = [node("n").obj(), make_pvc("c").volume("lost").obj()]
    fix = fixes(objects, make_pod("p").claim("c"))[0]
    assert fix.summary.startswith("Create PersistentVolume lost, which claim default/c is bound to")
    assert fix.steps[0].patch["kind"] == "PersistentVolume"


def test_a_node_that_was_selected_for_a_claim_is_forgotten() -> None:
    claim = make_pvc("c").storage_class("fast")
    claim.annotation("volume.kubernetes.io/selected-node", "gone")
    objects: list[KubeObject] = [make_storage_class("fast", EBS).waits().obj(), claim.obj()]
    objects += [node("n").obj(), make_csinode("n").driver(EBS, 4).obj()]
    fix = fixes(objects, make_pod("p").claim("c"))[0]
    assert "selected node of claim default/c (selected for node gone)" in fix.summary
    assert fix.steps[0].patch == {
        "metadata": {"annotations": {"volume.kubernetes.io/selected-node": None}}
    } or fix.steps[0].patch == {"metadata": {"annotations": None}}


def test_the_node_where_one_pod_blocks_is_found_among_many_where_several_do() -> None:
    objects: list[KubeObject] = []
    for index in range(100):
        objects.append(node(f"n{index:03}").label(HOSTNAME, f"n{index:03}").obj())
        for number in range(1 if index == 70 else 2):
            blocker = make_pod(f"x-{index}-{number}").labels(app="x")
            objects.append(blocker.node(f"n{index:03}").obj())
    found = fixes(objects, make_pod("p").anti_affinity(HOSTNAME, selector(app="x")))
    (moved,) = (fix for fix in found if fix.kinds == (FixKind.MOVE_POD,))
    assert moved.summary.startswith("Move pod default/x-70-0 from node n070 to node ")
    assert moved.node == "n070"


def test_a_node_in_trouble_that_is_tainted_besides_takes_two_steps() -> None:
    sick = node("n").taint("node.kubernetes.io/not-ready").taint("team", "x").obj()
    fix = one(fixes([sick], make_pod("p")), FixKind.CLEAR_TAINT, FixKind.TOLERATION)
    assert fix.summary == (
        "Repair node n, which has taint node.kubernetes.io/not-ready:NoSchedule,"
        " and tolerate taint team=x:NoSchedule; the pod then fits n."
    )
