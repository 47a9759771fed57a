"""The facts behind the refusals that are hardest to read."""

from __future__ import annotations

from collections.abc import Sequence

from bayplan.fit import Snapshot
from bayplan.fit.explanation import explain
from bayplan.kube.meta import KubeObject
from tests.builders import (
    PodBuilder,
    make_capacity,
    make_csidriver,
    make_csinode,
    make_node,
    make_pod,
    make_pvc,
    make_storage_class,
    selector,
)

EBS = "ebs.csi.aws.com"
ZONE = "topology.kubernetes.io/zone"
WEB = selector(app="web")


def details(objects: Sequence[KubeObject], pod: PodBuilder) -> dict[str, tuple[str, ...]]:
    nodes = explain(Snapshot(objects), pod.obj(), with_fixes=False).nodes
    return {answer.name: answer.details for answer in nodes}


def test_spreading_shows_the_count_of_each_domain_and_the_skew() -> None:
    objects: list[KubeObject] = [make_node(f"n-{zone}").zone(zone).obj() for zone in "abc"]
    objects += [make_node("nowhere").obj(), make_node("tainted").zone("d").taint("t").obj()]
    for number, zone in enumerate("aaabbc"):
        objects.append(make_pod(f"w{number}").labels(app="web").node(f"n-{zone}").obj())
    found = details(objects, make_pod("p").labels(app="web").spread(ZONE))
    assert found["n-a"] == (
        (
            f"{ZONE}=a has 3 matching pods, the fewest is 0: with this pod a skew of 4, at most 1"
            " allowed (by domain: d 0, c 1, b 2, a 3)"
        ),
    )
    assert found["nowhere"] == (f"it has no label {ZONE}",)


def test_of_many_domains_both_ends_are_shown() -> None:
    objects: list[KubeObject] = [make_node(f"n{z:02}").zone(f"z{z:02}").obj() for z in range(12)]
    objects.append(make_node("last").zone("z99").taint("t").obj())
    for zone in range(12):
        for number in range(zone + 1):
            pod = make_pod(f"w{zone}-{number}").labels(app="web")
            objects.append(pod.node(f"n{zone:02}").obj())
    (said,) = details(objects, make_pod("p").labels(app="web").spread(ZONE))["n00"]
    assert said.endswith(
        "(by domain: z99 0, z00 1, z01 2, z02 3, 5 more, z08 9, z09 10, z10 11, z11 12)"
    )


def test_too_few_domains_are_told() -> None:
    objects: list[KubeObject] = [make_node("a").zone("a").obj()]
    objects.append(make_pod("w").labels(app="web").node("a").obj())
    pod = make_pod("p").labels(app="web").spread(ZONE, min_domains=3)
    (said,) = details(objects, pod)["a"]
    assert said.endswith("(by domain: a 1, 3 domains wanted)")


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


def test_binding_names_the_claims_and_why() -> None:
    selected = make_pvc("held").storage_class("fast")
    selected.annotation("volume.kubernetes.io/selected-node", "other")
    objects: list[KubeObject] = [
        make_node("n").zone("a").obj(),
        make_csinode("n").driver(EBS, 9).driver("tight.example.com", 9).obj(),
        make_storage_class("fast", EBS).waits().obj(),
        make_storage_class("local", "kubernetes.io/no-provisioner").waits().obj(),
        make_storage_class("tight", "tight.example.com").waits().obj(),
        make_csidriver("tight.example.com").storage_capacity().obj(),
        make_capacity("cap", "tight").capacity("1Gi").obj(),
        selected.obj(),
        make_pvc("static").storage_class("local").size("5Gi").obj(),
        make_pvc("large").storage_class("tight").size("1536Mi").obj(),
    ]
    said = {
        claim: details(objects, make_pod("p").claim(claim))["n"]
        for claim in ("held", "static", "large")
    }
    assert said == {
        "held": ("claim default/held is selected for node other",),
        "static": (
            (
                "claim default/static wants 5 GiB of class 'local', for which nobody makes volumes,"
                " and no open one that can be reached from here will do"
            ),
        ),
        "large": ("claim default/large wants 1.5 GiB of class 'tight', more than is left here",),
    }


def test_a_taken_port_names_its_holder() -> None:
    objects: list[KubeObject] = [make_node("n").obj(), make_pod("x").host_port(80).node("n").obj()]
    assert details(objects, make_pod("p").host_port(80)) == {
        "n": ("host port 80/TCP is taken by pod default/x",)
    }
