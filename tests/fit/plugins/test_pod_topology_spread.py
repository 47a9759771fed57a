"""PodTopologySpread: constraints that a pod gets by default, and what is told of uneven domains."""

from __future__ import annotations

from bayplan.fit import PluginSet
from bayplan.fit.evaluation.verdicts import Verdicts
from bayplan.fit.requirements.default_spread import SpreadDefault, SpreadDefaults
from bayplan.kube.meta import KubeObject
from tests.builders import (
    make_node,
    make_pod,
    make_service,
)
from tests.fit.plugins.details import details
from tests.fit.plugins.scores import HOST, ZONE, only, scored, two_nodes, wanting


def test_default_constraints_may_have_to_hold() -> None:
    snapshot = two_nodes()
    snapshot.put(make_service("s", app="web").obj())
    snapshot.put(make_pod("one").labels(app="web").node("idle").obj())
    pod = wanting().labels(app="web").obj()
    must = PluginSet(args=(SpreadDefaults((SpreadDefault(1, HOST, must_hold=True),)),))
    assert snapshot.decide(pod, plugins=must).node == "busy"
    refusal = snapshot.verdicts(pod, plugins=must)
    assert isinstance(refusal, Verdicts)
    assert refusal.refusals["idle"].plugin == "PodTopologySpread"
    none = only("PodTopologySpread", SpreadDefaults(()))
    assert scored(snapshot, pod, none) == {"idle": 0, "busy": 0}
    own = make_pod("own").labels(app="web").spread(ZONE, 5, "ScheduleAnyway").obj()
    assert snapshot.decide(own, plugins=must).node is not None


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
