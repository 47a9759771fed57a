"""The nearest fixes, one way of refusing after another."""

from __future__ import annotations

import pytest

from bayplan.fit import Profile
from bayplan.fit.explanation import FixKind
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from tests.builders import (
    PodBuilder,
    make_attachment,
    make_csinode,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    name_term,
    node_term,
    selector,
)
from tests.fit.explanation.offered_fixes import EBS, HOSTNAME, ZONE, fixes, node, one


def volumes(node_name: str, limit: int, *claims: str) -> list[KubeObject]:
    """A CSINode, and a pod with a bound volume for each claim."""
    objects: list[KubeObject] = [make_csinode(node_name).driver(EBS, limit).obj()]
    for claim in claims:
        objects += [
            make_pv(f"pv-{claim}").csi(EBS, f"vol-{claim}").bound_to(claim).obj(),
            make_pvc(claim).volume(f"pv-{claim}").obj(),
            make_pod(f"pod-{claim}").claim(claim).node(node_name).obj(),
        ]
    return objects


def waiting_claim(name: str = "new") -> list[KubeObject]:
    return [
        make_storage_class("fast", EBS).waits().obj(),
        make_pvc(name).storage_class("fast").obj(),
    ]


def test_a_smaller_request_is_smaller_by_exactly_what_is_short() -> None:
    objects = [node("n3", cpu="2").obj(), make_pod("x").cpu("1500m").node("n3").obj()]
    fix = one(fixes(objects, make_pod("p").cpu("2")), FixKind.SMALLER_REQUEST)
    assert fix.summary == ("Request 1.5 CPUs less: 0.5 instead of 2; the pod then fits n3.")


def test_the_node_that_lacks_the_least_is_named_for_a_smaller_request() -> None:
    objects = [node("n1", cpu="1").obj(), node("n2", cpu="3").obj(), node("n3", cpu="2").obj()]
    fix = one(fixes(objects, make_pod("p").cpu("4")), FixKind.SMALLER_REQUEST)
    assert fix.node == "n2"


@pytest.mark.parametrize(
    "pod",
    [
        make_pod("containers").cpu("3").container(cpu="3"),
        make_pod("init").cpu("1").init(cpu="6"),
        make_pod("sidecar").cpu("3").sidecar(cpu="2").init(cpu="1"),
        make_pod("overhead").cpu("5").overhead(cpu="500m"),
        make_pod("pod-level").cpu("1").pod_level(cpu="6"),
        make_pod("limit").limit("cpu", "6"),
        make_pod("memory").memory("10Gi").cpu("5"),
    ],
    ids=lambda pod: str(pod.obj().name),
)
def test_requests_shrink_however_they_were_said(pod: PodBuilder) -> None:
    one(fixes([node("n").obj()], pod), FixKind.SMALLER_REQUEST)


def test_nothing_free_is_not_offered_as_a_smaller_request() -> None:
    objects = [node("n").obj(), make_pod("x").cpu("4").node("n").obj()]
    found = fixes(objects, make_pod("p").cpu("1"))
    assert FixKind.SMALLER_REQUEST not in {kind for fix in found for kind in fix.kinds}


def test_the_toleration_that_is_missing_is_named() -> None:
    tainted = node("n").taint("team", "a").taint("gpu", effect="NoExecute").obj()
    fix = one(fixes([tainted], make_pod("p")), FixKind.TOLERATION)
    assert "team=a:NoSchedule, gpu:NoExecute" in fix.summary


def test_a_node_in_trouble_is_to_be_cured_not_tolerated() -> None:
    sick = node("n").taint("node.kubernetes.io/not-ready").obj()
    found = fixes([sick], make_pod("p"))
    assert found[0].kinds == (FixKind.CLEAR_TAINT,)
    assert FixKind.TOLERATION not in {kind for fix in found for kind in fix.kinds}


def test_a_cordon_is_lifted_with_its_taint() -> None:
    cordoned = node("n").unschedulable().taint("node.kubernetes.io/unschedulable").obj()
    found = fixes([cordoned], make_pod("p"))
    assert found[0].summary == "Uncordon node n; the pod then fits n."


def test_the_label_that_is_missing_is_named_with_its_node() -> None:
    found = fixes([node("n").label("disk", "hdd").obj()], make_pod("p").node_selector(disk="ssd"))
    labelled = one(found, FixKind.LABEL_NODE)
    assert labelled.steps[0].text == "set label disk=ssd (now hdd) on node n"
    assert "disk from ssd to hdd" in one(found, FixKind.CHANGE_SELECTOR).summary


def test_labels_that_a_cloud_keeps_are_not_to_be_set_by_hand() -> None:
    found = fixes([node("n").zone("a").obj()], make_pod("p").node_selector({ZONE: "b"}))
    assert [fix.kinds for fix in found] == [(FixKind.CHANGE_SELECTOR,)]


def test_an_affinity_expression_that_does_not_hold_is_met_or_dropped() -> None:
    pod = make_pod("p").node_affinity(node_term("gen", "Gt", "4"), node_term("old", "Exists"))
    found = fixes([node("n").label("gen", "3").obj()], pod)
    assert "gen=5" in one(found, FixKind.LABEL_NODE).summary
    assert one(found, FixKind.CHANGE_SELECTOR).steps[0].text == (
        "drop 'gen Gt [4]' from the required node affinity"
    )


def test_a_pod_is_moved_only_where_it_fits() -> None:
    objects = [
        node("full", cpu="4").obj(),
        node("small", cpu="1").obj(),
        make_pod("mover").cpu("1").node("full").obj(),
        make_pod("heavy").cpu("3").node("full").obj(),
    ]
    found = fixes(
        objects, make_pod("p").cpu("1").toleration("none").node_selector({HOSTNAME: "full"})
    )
    moved = [fix for fix in found if FixKind.MOVE_POD in fix.kinds]
    assert [fix.steps[0].text for fix in moved][:1] == [
        "move pod default/mover from node full to node small"
    ]


def test_a_daemons_pod_is_never_moved() -> None:
    daemon = make_pod("d").cpu("4").owner("DaemonSet", "d").node("n1").obj()
    objects = [node("n1").obj(), node("n2").obj(), daemon]
    pod = make_pod("p").cpu("1").node_selector({HOSTNAME: "n1"})
    found = fixes(objects, pod)
    assert FixKind.MOVE_POD not in {kind for fix in found for kind in fix.kinds}


def test_one_more_node_comes_with_its_driver_and_its_daemons() -> None:
    objects = [node("n1").obj(), *volumes("n1", 1, "a"), *waiting_claim()]
    objects += [make_pod("d").cpu("1").owner("DaemonSet", "d").node("n1").obj()]
    fix = one(fixes(objects, make_pod("p").claim("new").cpu("1")), FixKind.ADD_NODE)
    assert {type(obj).__name__ for obj in fix.steps[0].puts} == {"Node", "CSINode", "Pod"}


def test_a_kind_of_node_that_its_daemons_fill_is_not_offered() -> None:
    objects: list[KubeObject] = [node("n1", cpu="2").obj()]
    objects += [make_pod("d").cpu("1").owner("DaemonSet", "d").node("n1").obj()]
    found = fixes(objects, make_pod("p").cpu("2"))
    assert FixKind.ADD_NODE not in {kind for fix in found for kind in fix.kinds}


def test_a_limit_that_is_too_low_is_raised_by_what_is_short() -> None:
    objects = [node("n1").obj(), *volumes("n1", 1, "a"), *waiting_claim()]
    fix = one(fixes(objects, make_pod("p").claim("new")), FixKind.RAISE_LIMIT)
    assert f"limit of {EBS} on node n1 by 1, from 1 to 2 (CSINode)" in fix.summary


def test_a_published_limit_is_raised_where_it_was_published() -> None:
    full = node("n").capacity({"storage-attach-limits-aws-ebs": "1"}).obj()
    objects = [full, make_pod("x").ebs("vol-1").node("n").obj()]
    fix = one(fixes(objects, make_pod("p").ebs("vol-2")), FixKind.RAISE_LIMIT)
    assert "from 1 to 2 (storage-attach-limits-aws-ebs)" in fix.summary


def test_a_limit_of_the_fallback_table_cannot_be_raised_with_the_gate_off() -> None:
    profile = Profile(gates=FeatureGates({"AttachVolumeLimit": False}), max_volumes_override=1)
    objects = [node("n").obj(), make_pod("x").ebs("vol-1").node("n").obj()]
    found = fixes(objects, make_pod("p").ebs("vol-2"), profile)
    assert FixKind.RAISE_LIMIT not in {kind for fix in found for kind in fix.kinds}


def test_a_volume_that_nobody_uses_is_detached() -> None:
    objects = [node("n1").obj(), *volumes("n1", 1), *waiting_claim()]
    objects += [
        make_pv("pv-left").csi(EBS, "vol-left").obj(),
        make_attachment("va", EBS, "n1", "pv-left").obj(),
    ]
    found = fixes(objects, make_pod("p").claim("new"))
    assert found[0].kinds == (FixKind.DETACH_VOLUME,)
    assert "VolumeAttachment va" in found[0].summary


def test_a_driver_that_is_missing_is_installed_with_the_limit_it_has_elsewhere() -> None:
    objects = [node("n1").obj(), *volumes("n1", 1, "a"), node("n2").obj(), *waiting_claim()]
    fix = one(fixes(objects, make_pod("p").claim("new")), FixKind.INSTALL_DRIVER)
    assert fix.summary == (
        f"Install driver {EBS} (limit 1, as elsewhere) on node n2; the pod then fits n2."
    )


def test_a_missing_claim_is_created_of_the_class_that_its_neighbours_use() -> None:
    objects = [node("n").obj(), make_csinode("n").driver(EBS).obj(), *waiting_claim("data-0")]
    objects += [make_storage_class("slow", EBS).waits().is_default().obj()]
    fix = one(fixes(objects, make_pod("p").claim("data-1")), FixKind.CREATE_CLAIM)
    assert fix.steps[0].text == "create claim default/data-1, of class fast"


def test_a_missing_class_is_created() -> None:
    objects = [node("n").obj(), make_csinode("n").driver(EBS).obj(), *waiting_claim("other")]
    objects += [make_pvc("c").storage_class("gone").obj()]
    fix = one(fixes(objects, make_pod("p").claim("c")), FixKind.CREATE_CLASS)
    assert "StorageClass gone" in fix.summary


def test_a_claim_that_binds_at_once_waits_for_its_provisioner() -> None:
    objects = [
        node("n").obj(),
        make_csinode("n").driver(EBS).obj(),
        make_storage_class("now", EBS).obj(),
        make_pvc("c").storage_class("now").obj(),
    ]
    fix = one(fixes(objects, make_pod("p").claim("c")), FixKind.BIND_CLAIM)
    assert EBS in fix.summary


def test_a_static_class_needs_a_volume() -> None:
    static = make_storage_class("local", "kubernetes.io/no-provisioner").waits().obj()
    objects = [node("n").obj(), static, make_pvc("c").storage_class("local").obj()]
    fix = one(fixes(objects, make_pod("p").claim("c")), FixKind.ADD_VOLUME)
    assert "on node n (1Gi of class 'local')" in fix.summary


def test_a_pod_that_has_a_claim_for_itself_is_stopped() -> None:
    exclusive = make_pvc("c").access("ReadWriteOncePod").volume("pv").obj()
    objects = [
        node("n").obj(),
        make_csinode("n").driver(EBS).obj(),
        make_pv("pv").csi(EBS, "v").access("ReadWriteOncePod").bound_to("c").obj(),
        exclusive,
        make_pod("holder").claim("c").node("n").obj(),
    ]
    fix = one(fixes(objects, make_pod("p").claim("c")), FixKind.STOP_POD)
    assert "default/holder" in fix.summary
    assert fix.steps[0].deletes == ((Pod, "default/holder"),)


def test_a_taken_host_port_is_given_up_or_its_holder_moved() -> None:
    holder = make_pod("holder").host_port(80).node("n1").obj()
    only_there = make_pod("p").host_port(80).node_selector({HOSTNAME: "n1"})
    found = fixes([node("n1").obj(), node("n2").obj(), holder], only_there)
    assert {fix.kinds for fix in found} >= {(FixKind.MOVE_POD,), (FixKind.DROP_HOST_PORT,)}


def test_spreading_is_relaxed_by_as_little_as_will_do() -> None:
    objects: list[KubeObject] = [node("n1").zone("a").obj(), node("n2", cpu="1").zone("b").obj()]
    objects += [make_pod(f"x{i}").labels(app="w").node("n1").obj() for i in range(2)]
    pod = make_pod("p").labels(app="w").cpu("2").spread(ZONE, 1)
    fix = one(fixes(objects, pod), FixKind.RELAX_SPREAD)
    assert f"maxSkew over {ZONE} from 1 to 3" in fix.summary


def test_an_affinity_that_nobody_meets_is_dropped() -> None:
    pod = make_pod("p").affinity(HOSTNAME, selector(app="db"))
    fix = one(fixes([node("n").obj()], pod), FixKind.DROP_AFFINITY)
    assert "affinity to pods with app=db" in fix.summary


def test_a_pod_that_keeps_others_away_is_moved() -> None:
    keeper = make_pod("k").labels(app="w").anti_affinity(HOSTNAME, selector(app="w")).node("n1")
    pod = make_pod("p").labels(app="w").node_selector({HOSTNAME: "n1"})
    found = fixes([node("n1").obj(), node("n2").obj(), keeper.obj()], pod)
    one(found, FixKind.MOVE_POD)


def test_affinity_to_names_that_nobody_has_is_dropped() -> None:
    pod = make_pod("p").node_affinity(name_term("gone"))
    found = fixes([node("n").obj()], pod)
    assert found[0].steps[0].text == "drop the required node affinity (to gone)"


def test_affinity_to_two_names_at_once_is_dropped() -> None:
    both = name_term("n1")
    both.match_fields = [*both.match_fields, *name_term("n2").match_fields]
    found = fixes([node("n1").obj(), node("n2").obj()], make_pod("p").node_affinity(both))
    assert found[0].kinds == (FixKind.CHANGE_SELECTOR,)


def test_every_claim_that_is_missing_is_created() -> None:
    objects = [node("n").obj(), make_csinode("n").driver(EBS).obj(), *waiting_claim("other")]
    pod = make_pod("p").claim("a").claim("b").claim("c").claim("d")
    one(fixes(objects, pod), *[FixKind.CREATE_CLAIM] * 4)


def test_two_affinities_that_nobody_meets_are_both_dropped() -> None:
    pod = make_pod("p").affinity(HOSTNAME, selector(app="db")).affinity(ZONE, selector(app="mq"))
    found = fixes([node("n").zone("a").obj()], pod)
    assert [fix.kinds for fix in found] == [(FixKind.DROP_AFFINITY, FixKind.DROP_AFFINITY)]


def test_two_obstacles_take_two_steps() -> None:
    tainted = node("n", cpu="2").taint("team").obj()
    fix = one(fixes([tainted], make_pod("p").cpu("3")), FixKind.TOLERATION, FixKind.SMALLER_REQUEST)
    assert "and request 1 CPU less" in fix.summary


def test_what_cannot_be_helped_gets_no_fix() -> None:
    assert fixes([], make_pod("p")) == []
