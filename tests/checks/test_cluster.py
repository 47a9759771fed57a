"""Storage out of reach, versions, budgets, pods that wait, and node groups."""

from __future__ import annotations

import pytest

from bayplan.autoscaler.providers.declared.sources import parse_groups
from bayplan.checks import CheckedCluster, Finding, Severity, check
from bayplan.checks.findings import clause
from bayplan.fit import Profile
from bayplan.kube.codec import ObjectError
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import SELECTED_NODE
from bayplan.kube.volcano import QUEUE_SCHEDULING_GATE
from tests.builders import (
    PodBuilder,
    make_csinode,
    make_pdb,
    make_pod,
    make_pv,
    make_pvc,
    make_queue,
    make_storage_class,
    node_term,
)
from tests.checks.clusters import (
    DISK,
    NEW,
    NOW,
    OLD,
    ZONE,
    codes,
    healthy,
    look,
    typed_node,
    without,
)

# -- storage -----------------------------------------------------------------------------------


def test_a_volume_that_no_node_reaches() -> None:
    far = make_pv("far").csi(DISK, "f").bound_to("c").node_affinity(node_term(ZONE, "In", "z"))
    (one,) = look([*healthy(), far.obj()])
    assert (one.kind.code, one.examples[0].detail) == ("VolumeOutOfReach", "claim default/c")
    assert codes([*healthy(), far.obj(), typed_node("z", zone="z", kind="z").obj()]) == []
    nobodys = make_pv("far").csi(DISK, "f").node_affinity(node_term(ZONE, "In", "z"))
    assert codes([*healthy(), nobodys.obj()]) == []


def test_a_volume_may_be_reached_by_other_words_than_labels_of_places() -> None:
    for term in (node_term("gpu", "DoesNotExist"), node_term(ZONE, "NotIn", "z")):
        volume = make_pv("v").csi(DISK, "v").bound_to("c").node_affinity(term)
        assert codes([*healthy(), volume.obj()]) == []


def test_claims_of_a_class_for_which_there_is_no_node() -> None:
    far = make_storage_class("far", DISK).waits().topology(ZONE, "z").obj()
    claim = make_pvc("c").storage_class("far").created(OLD).obj()
    assert codes([*healthy(), far, claim]) == ["ClassOutOfReach"]
    assert codes([*healthy(), far]) == []
    near = make_storage_class("far", DISK).waits().topology(ZONE, "z", "a").obj()
    assert codes([*healthy(), near, claim]) == []


def test_claims_to_be_made_for_a_node_that_is_gone() -> None:
    claim = make_pvc("c").storage_class("fast").created(OLD)
    assert codes([*healthy(), claim.annotation(SELECTED_NODE, "n9").obj()]) == ["ClaimForGoneNode"]
    assert codes([*healthy(), claim.annotation(SELECTED_NODE, "n1").obj()]) == []


def test_pods_on_nodes_that_are_gone() -> None:
    lost = make_pod("lost").node("n9").created(OLD)
    assert codes([*healthy(), lost.obj()]) == ["PodOnGoneNode"]
    assert codes([*healthy(), lost.phase("Succeeded").obj()]) == []


# -- versions ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "kubelet", "expected"),
    [
        ("v1.36.4", "v1.36.4", []),
        ("v1.36.4", "v1.33.0-eks-1", []),
        ("v1.36.4", "v1.32.9", ["KubeletTooOld"]),
        ("v1.36.4", "v1.37.0", ["KubeletNewer"]),
        ("v1.36.4", "v2.0.0", ["KubeletNewer"]),
        ("", "v1.33.0", []),
        ("", "v1.32.0", ["KubeletVersionSkew"]),
        ("v1.36.4", "unknown", []),
        ("what", "v1.32.0", ["KubeletVersionSkew"]),
    ],
)
def test_kubelets_beside_the_server_or_among_themselves(
    server: str, kubelet: str, expected: list[str]
) -> None:
    odd = typed_node("odd", kind="other", kubelet=kubelet).obj()
    assert codes([*healthy(), odd], server_version=server) == expected


# -- nodes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["False", "Unknown"])
def test_a_node_that_is_not_ready(status: str) -> None:
    rest = without(healthy(), "Node/n1")
    (one,) = look([*rest, typed_node("n1").ready(status).obj()])
    assert (one.kind.code, one.examples[0].name) == ("NodeNotReady", "n1")
    assert codes([*rest, typed_node("n1").ready("True").obj()]) == []
    assert codes([*rest, typed_node("n1").ready(status).created(NEW).obj()]) == []


# -- budgets -----------------------------------------------------------------------------------


def test_a_budget_that_never_allows_an_eviction() -> None:
    budget = make_pdb("b", None).obj()
    budget.status.expected_pods = budget.status.desired_healthy = 3
    (one,) = look([*healthy(), budget])
    assert (one.kind.code, one.examples[0].detail) == ("BudgetNeverAllows", "3 of 3 pods")
    budget.status.desired_healthy = 2
    assert codes([*healthy(), budget]) == []


# -- pods --------------------------------------------------------------------------------------


def only(objects: list[KubeObject], **more: object) -> Finding:
    (one,) = look(objects, **more)
    return one


def test_pods_alike_that_wait_are_one_finding_with_the_first_to_explain() -> None:
    pods = [make_pod(f"big-{n}").cpu("64").created(OLD).obj() for n in range(7)]
    one = only([*healthy(), *pods])
    assert (one.kind.code, one.count) == ("PodsWaitForResources", 7)
    assert one.text == "7 pods wait: Insufficient cpu"
    assert "bayplan explain default/big-0" in one.advice


def test_pods_that_wait_for_volumes_are_told_by_driver() -> None:
    objects = [*healthy(), make_storage_class("now", DISK).obj()]
    objects += [make_pvc("c").storage_class("now").created(OLD).obj()]
    one = only([*objects, make_pod("p").claim("c").created(OLD).obj()])
    assert (one.kind.code, one.about) == ("PodsWaitForVolumes", DISK)


@pytest.mark.parametrize(
    ("pod", "code"),
    [
        (make_pod("p").node_selector(disk="ssd"), "PodsWaitForAffinity"),
        (make_pod("p").gate("example.com/x"), "PodsWaitForGate"),
        (make_pod("p").gate(QUEUE_SCHEDULING_GATE), "PodsWaitForQueue"),
        (make_pod("p").scheduler("fancy"), "PodsWaitForScheduler"),
        (make_pod("p").device("gone"), "PodsWaitForDevices"),
    ],
)
def test_pods_that_wait_are_told_by_cause(pod: PodBuilder, code: str) -> None:
    assert codes([*healthy(), pod.created(OLD).obj()]) == [code]


def test_what_a_scheduler_says_itself_is_told_beside_what_is_thought_of_it() -> None:
    pod = make_pod("p").created(OLD).condition("PodScheduled", "False", "Unschedulable")
    pod.obj().status.conditions[0].message = "0/3 nodes are available: 3 moods."
    one = only([*healthy(), pod.obj()])
    assert one.text.endswith("; its message: 0/3 nodes are available: 3 moods.")


def test_pods_wait_for_taints_where_all_nodes_have_them() -> None:
    nodes = [typed_node("n").taint("team", "a").obj()]
    assert codes([*nodes, make_pod("p").created(OLD).obj()]) == ["PodsWaitForTaints"]


def test_pods_wait_for_ports_or_other_things() -> None:
    holders = [make_pod(f"h{n}").host_port(80).node(f"n{n}").created(OLD).obj() for n in range(3)]
    waiting = make_pod("p").host_port(80).created(OLD).obj()
    assert codes([*healthy(), *holders, waiting]) == ["PodsWait"]


def test_pods_that_have_only_begun_to_wait_are_no_trouble_yet() -> None:
    one = only([*healthy(), make_pod("p").cpu("64").created(NEW).obj()])
    assert (one.kind.code, one.kind.severity) == ("PodsWaitBriefly", Severity.INFO)
    assert one.text == "1 pod pending for less than 5m"


def test_our_gate_on_pods_goes_by_quota_whether_the_feature_is_on_or_off() -> None:
    """As the scheduler's own story of everything off has it: what is gated is let in as ever."""
    off = Profile(gates=FeatureGates({"QueueAllocationGate": False}))
    gated = make_pod("p").gate(QUEUE_SCHEDULING_GATE).created(OLD).obj()
    assert codes([*healthy(), gated], profile=off) == codes([*healthy(), gated])
    assert not any(one.severity is Severity.ERROR for one in look([*healthy(), gated], profile=off))


# -- node groups -------------------------------------------------------------------------------

GROUP = """
nodeGroups:
- name: workers
  min: {min}
  max: {max}
  nodeSelector: {{node.kubernetes.io/instance-type: m}}
  template:
    labels: {{node.kubernetes.io/instance-type: {label}}}
    capacity: {{cpu: {cpu}, memory: 8Gi}}
  csiDrivers: {{{driver}: {limit}}}
"""
TRUE = {"min": 0, "max": 9, "cpu": 4, "label": "m", "driver": DISK, "limit": 2}


def declared(**changes: object) -> dict[str, object]:
    text = GROUP.format(**{**TRUE, **changes})
    return {"groups": parse_groups(text.encode(), "groups.yaml")}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cpu": 8}, "cpu: template 8, node 4"),
        ({"limit": 25}, f"{DISK}: template 25, node 2"),
        ({"limit": "none"}, f"{DISK}: template unlimited, node 2"),
        (
            {"driver": "other.example.com"},
            "other.example.com: in the template, not registered on the node",
        ),
        ({"label": "l"}, "label node.kubernetes.io/instance-type: template l, node m"),
    ],
)
def test_a_template_that_lies(changes: dict[str, object], said: str) -> None:
    one = only(healthy(), **declared(**changes))
    assert (one.kind.code, one.about, one.count) == ("TemplateMismatch", "workers", 3)
    assert one.examples[0].detail == said


def test_a_template_that_promises_less_or_the_same_is_none() -> None:
    assert codes(healthy(), **declared()) == []
    assert codes(healthy(), **declared(cpu=3)) == []


def test_a_taint_that_the_template_does_not_tell_of() -> None:
    rest = without(healthy(), "Node/n1")
    tainted = [*rest, typed_node("n1").taint("team", "a").obj()]
    assert [one.kind.code for one in look(tainted, **declared())] == ["TemplateMismatch"]
    passing = [*rest, typed_node("n1").taint("node.kubernetes.io/memory-pressure").obj()]
    assert codes(passing, **declared()) == []


def test_groups_at_their_bounds() -> None:
    assert codes(healthy(), **declared(min=4)) == ["GroupBelowMinimum"]
    assert codes(healthy(), **declared(max=3)) == []


def test_a_group_at_its_maximum_with_pods_that_would_fit_another_node() -> None:
    held = [make_pod(f"h{n}").cpu("3").node(f"n{n}").created(OLD).obj() for n in range(3)]
    waiting = make_pod("p").cpu("2").created(OLD)
    objects = [*without(healthy(), "Pod"), *held, waiting.obj()]
    found = {one.kind.code: one for one in look(objects, **declared(max=3))}
    assert set(found) == {"GroupAtMaximum", "PodsWaitForResources"}
    assert found["GroupAtMaximum"].text == (
        "group workers is at its maximum of 3 nodes, and 1 pending pod would fit on another node of"
        " it"
    )
    alone = check(CheckedCluster(objects, NOW, **declared(max=3)), ["GroupAtMaximum"]).findings  # type: ignore[arg-type]
    assert alone == (found["GroupAtMaximum"],), "whatever else is looked for"
    assert "GroupAtMaximum" not in codes(objects, **declared(max=4))
    larger = [*objects[:-1], waiting.cpu("64").obj()]
    assert "GroupAtMaximum" not in codes(larger, **declared(max=3))


# -- what could not be used --------------------------------------------------------------------


def test_objects_that_were_left_out_are_told() -> None:
    wrong = ObjectError("Node odd", "status.allocatable", "many", "is no quantity")
    one = only(healthy(), left_out=[wrong])
    assert (one.kind.code, one.examples[0].name) == ("ObjectsLeftOut", "Node odd")


def test_what_was_read_of_a_live_cluster_is_known_even_if_there_is_none() -> None:
    node, lost = typed_node("n0").obj(), make_pod("lost").node("n9").created(OLD).obj()
    assert codes([lost]) == []
    assert codes([lost], read=frozenset({Node, Pod})) == ["PodOnGoneNode"]
    assert codes([node, lost]) == ["PodOnGoneNode"]


def test_a_driver_is_not_missing_where_csinodes_could_not_be_read() -> None:
    objects = [*without(healthy(), "CSINode"), make_queue("r").obj()]
    assert codes(objects) == []
    assert codes([*objects, make_csinode("n0").driver(DISK, 2).obj()]) == []


@pytest.mark.parametrize(
    ("count", "said"), [(1, "1 claim of class fast waits"), (2, "2 claims of class fast wait")]
)
def test_one_does_what_many_do(count: int, said: str) -> None:
    assert clause(count, "claim", "wait", "of class fast") == said
    assert clause(count, "node", "publish").endswith("publishes" if count == 1 else "publish")
    assert clause(count, "class", "want") == ("1 class wants" if count == 1 else "2 classes want")


def test_one_pod_that_its_scheduler_leaves_alone_is_told_as_one() -> None:
    one = only([*healthy(), make_pod("p").created(OLD).scheduler("other").obj()])
    assert one.text == "1 pod waits for scheduler other, although a fitting node exists"
