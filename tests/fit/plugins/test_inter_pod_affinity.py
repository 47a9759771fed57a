"""InterPodAffinity: rules of waiting and of running pods."""

from __future__ import annotations

from bayplan.fit.plugins.inter_pod_affinity.score import PodAffinitySettings
from bayplan.kube.meta import KubeObject, LabelSelector, LabelSelectorRequirement
from bayplan.kube.pods import PodAffinityTerm
from tests.builders import (
    make_namespace,
    make_node,
    make_pod,
    selector,
)
from tests.fit.kubernetes import kubernetes, node, reasons
from tests.fit.plugins.details import details
from tests.fit.plugins.scores import HOST, only, scored, two_nodes, wanting


def test_a_running_pods_need_weighs_what_the_profile_says() -> None:
    snapshot = two_nodes()
    near = make_pod("near").node("idle").affinity(HOST, selector(app="web"))
    likes = make_pod("likes").node("busy").prefers_affinity(5, HOST, selector(app="web"))
    snapshot.put(near.obj())
    snapshot.put(likes.obj())
    pod = wanting().labels(app="web").obj()
    assert scored(snapshot, pod, only("InterPodAffinity")) == {"idle": 0, "busy": 100}
    hard = only("InterPodAffinity", PodAffinitySettings(hard_weight=50))
    assert scored(snapshot, pod, hard) == {"idle": 100, "busy": 0}
    deaf = only("InterPodAffinity", PodAffinitySettings(ignores_preferences=True))
    assert scored(snapshot, pod, deaf) == {"idle": 0, "busy": 0}


ZONE = "topology.kubernetes.io/zone"


WEB = selector(app="web")


def test_anti_affinity_names_the_pods_that_block() -> None:
    objects: list[KubeObject] = [make_node("a1").zone("a").obj(), make_node("a2").zone("a").obj()]
    objects += [make_pod("w1").labels(app="web").node("a1").obj()]
    assert details(objects, make_pod("p").anti_affinity(ZONE, WEB)) == {
        "a1": (f"pod default/w1 is here, in {ZONE}=a, and this pod keeps away from it",),
        "a2": (f"pod default/w1 is on node a1, in {ZONE}=a, and this pod keeps away from it",),
    }
    for number in range(4):
        objects.append(make_pod(f"x{number}").labels(app="web").node("a2").obj())
    assert details(objects, make_pod("p").anti_affinity(ZONE, WEB))["a1"][-1] == "and 2 more"


def test_the_rule_of_a_running_pod_is_told_as_its_own() -> None:
    loner = make_pod("loner").anti_affinity(ZONE, WEB).node("a")
    objects: list[KubeObject] = [make_node("a").zone("a").obj(), loner.obj()]
    assert details(objects, make_pod("p").labels(app="web")) == {
        "a": (f"pod default/loner is here, in {ZONE}=a, and it keeps this pod away",)
    }


def test_affinity_names_the_match_that_is_missing() -> None:
    objects: list[KubeObject] = [make_node("a").zone("a").obj(), make_node("bare").obj()]
    objects += [make_node("b").zone("b").taint("t").obj()]
    pod = make_pod("p").affinity(ZONE, WEB)
    assert details(objects, pod)["a"] == (
        f"no pod with app=web is in {ZONE}=a; there are such in nowhere",
    )
    objects.append(make_pod("w").labels(app="web").node("b").obj())
    found = details(objects, pod)
    assert found["a"] == (f"no pod with app=web is in {ZONE}=a; there are such in b",)
    assert found["bare"] == (
        f"it has no label {ZONE}, over which pods with app=web are to be near",
    )


ZONE = "topology.kubernetes.io/zone"


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
