"""Corners of kube-scheduler 1.36 that its recorded decisions do not reach.

Each was seen in the real scheduler, next to clusters made at random.
"""

from __future__ import annotations

from bayplan.fit import Profile, Snapshot
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.preemption import preempt
from bayplan.kube.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from bayplan.kube.nodes import Node, NodeSelectorTerm
from bayplan.kube.pods import Pod, PodAffinityTerm
from bayplan.kube.storage import StorageClass
from tests.builders import (
    make_capacity,
    make_csidriver,
    make_csinode,
    make_namespace,
    make_node,
    make_pdb,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    node_term,
    selector,
)

DRIVER = "ebs.csi.aws.com"
BETA_REGION = "failure-domain.beta.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


def node(name: str = "n1") -> Node:
    return make_node(name).capacity(cpu="4", memory="8Gi", pods=10).zone("a").obj()


def kubernetes(*objects: KubeObject) -> Snapshot:
    return Snapshot(objects, profile=Profile.kubernetes())


def asked(snapshot: Snapshot, pod: Pod) -> Verdicts:
    found = snapshot.verdicts(pod)
    assert isinstance(found, Verdicts)
    return found


def reasons(snapshot: Snapshot, pod: Pod) -> dict[str, tuple[str, ...]]:
    refusals = asked(snapshot, pod).refusals
    return {name: refusal.reasons for name, refusal in refusals.items()}


def static_class(name: str = "static") -> StorageClass:
    return make_storage_class(name, NO_PROVISIONER).waits().obj()


def test_an_own_namespace_selector_that_accepts_no_labels_means_every_namespace() -> None:
    unlabelled = LabelSelector(
        match_expressions=[LabelSelectorRequirement(key="team", operator="DoesNotExist")]
    )
    term = PodAffinityTerm(
        topology_key=ZONE, label_selector=selector(app="web"), namespace_selector=unlabelled
    )
    waiting = make_pod("waiting").affinity_term(term, anti=True).obj()
    running = make_pod("running").labels(app="web").node("n1").obj()
    team = make_namespace("default").labels(team="a").obj()
    said = reasons(kubernetes(team, node(), running), waiting)
    assert said == {"n1": ("node(s) didn't match pod anti-affinity rules",)}


def test_a_volume_that_names_a_claim_of_another_class_does_not_serve_it() -> None:
    volume = make_pv("v").size("5Gi").storage_class("other").bound_to("c").csi(DRIVER, "h").obj()
    claim = make_pvc("c").size("1Gi").storage_class("static").obj()
    snapshot = kubernetes(node(), static_class(), volume, claim)
    said = reasons(snapshot, make_pod("p").claim("c").obj())
    assert said == {"n1": ("node(s) didn't find available persistent volumes to bind",)}


def test_a_claim_that_a_pod_names_twice_takes_two_volumes() -> None:
    claim = make_pvc("c").size("1Gi").storage_class("static").obj()
    volumes = [
        make_pv(name).size("5Gi").storage_class("static").csi(DRIVER, name).obj()
        for name in ("v1", "v2")
    ]
    for volume in volumes:
        volume.status.phase = "Available"
    twice = make_pod("p").claim("c").claim("c").obj()
    snapshot = kubernetes(node(), static_class(), claim, volumes[0])
    assert snapshot.decide(twice).node is None
    snapshot.put(volumes[1])
    assert snapshot.decide(twice).node == "n1"


def test_of_several_claims_the_problem_of_the_smallest_is_told() -> None:
    full = make_storage_class("full", DRIVER).waits().obj()
    driver = make_csidriver(DRIVER).storage_capacity().obj()
    capacity = make_capacity("room", "full").capacity("1Gi").topology(LabelSelector()).obj()
    large = make_pvc("large").size("5Gi").storage_class("full").obj()
    small = make_pvc("small").size("2Gi").storage_class("static").obj()
    snapshot = kubernetes(node(), static_class(), full, driver, capacity, large, small)
    said = reasons(snapshot, make_pod("p").claim("large").claim("small").obj())
    assert said == {"n1": ("node(s) didn't find available persistent volumes to bind",)}


def test_the_score_of_what_is_left_ignores_pod_level_requests_of_a_waiting_pod() -> None:
    plain = make_pod("plain").cpu("1").memory("1Gi").obj()
    large = make_pod("large").cpu("1").memory("1Gi").pod_level(cpu="3", memory="6Gi").obj()
    snapshot = kubernetes(node())
    scores = [asked(snapshot, pod).scores["n1"] for pod in (plain, large)]
    assert scores[0]["NodeResourcesFit"] == scores[1]["NodeResourcesFit"]


def test_a_pod_uses_up_every_budget_that_guards_it_even_if_one_is_spent() -> None:
    def victim(name: str, priority: int, labels: dict[str, str]) -> Pod:
        pod = make_pod(name).cpu("1500m").labels(labels).priority(priority)
        return pod.node("n1").started("2026-01-01T00:00:00Z").obj()

    spent = make_pdb("spent", selector(app="web")).allows(0).obj()
    one_left = make_pdb("one-left", selector(tier="front")).allows(1).obj()
    both = victim("both", 2, {"app": "web", "tier": "front"})
    front = victim("front", 1, {"tier": "front"})
    snapshot = kubernetes(node(), spent, one_left, both, front)
    found = preempt(snapshot, make_pod("urgent").cpu("4").priority(9).obj())
    assert found.budgets_broken == 2


def test_a_csi_volume_needs_its_driver_next_to_a_migrated_one_that_does_not() -> None:
    driver = make_csidriver(DRIVER).prevent_if_missing().obj()
    volume = make_pv("v").storage_class("x").bound_to("c").csi(DRIVER, "h").obj()
    claim = make_pvc("c").storage_class("x").volume("v").obj()
    profile = Profile.kubernetes(volume_limit_scaling=True)
    snapshot = Snapshot([node(), driver, volume, claim], profile=profile)
    assert snapshot.decide(make_pod("migrated").ebs("vol-1").obj()).node == "n1"
    assert snapshot.decide(make_pod("both").claim("c").ebs("vol-1").obj()).node is None


def test_a_migrated_volumes_old_region_label_is_renamed_only_where_it_has_values() -> None:
    migrated = make_csinode("n1").driver(DRIVER, 8).migrated("kubernetes.io/aws-ebs").obj()
    zoned = make_node("n1").capacity(cpu="4", memory="8Gi", pods=10).zone("a", "r").obj()
    claim = make_pvc("c").storage_class("x").volume("v").obj()

    def decide(*terms: NodeSelectorTerm) -> str | None:
        volume = make_pv("v").storage_class("x").bound_to("c").ebs("vol-1").node_affinity(*terms)
        snapshot = kubernetes(zoned, migrated, claim, volume.obj())
        return snapshot.decide(make_pod("p").claim("c").obj()).node

    old_zone = node_term("failure-domain.beta.kubernetes.io/zone", "In", "b")
    assert decide(old_zone, node_term(BETA_REGION, "Exists")) is None
    assert decide(old_zone, node_term(BETA_REGION, "In", "r")) == "n1"
