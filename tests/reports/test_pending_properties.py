"""Pods told together: each is told once, and it ends for it as if it had been asked by itself."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import Profile, Snapshot
from bayplan.fit.explanation import explain
from bayplan.fit.explanation.cause import list_pending_pods
from bayplan.kube.meta import KubeObject
from bayplan.kube.pods import Pod
from bayplan.reports.judgement import RulesComparison
from bayplan.reports.pending import OUTCOMES, explain_pods, outcome_of
from tests.builders import (
    make_csinode,
    make_device_class,
    make_node,
    make_pod,
    make_pvc,
    make_resource_claim,
    make_storage_class,
)

pytestmark = pytest.mark.whole


DRIVER = "disk.csi.example.com"
KINDS = st.tuples(
    st.sampled_from(["1", "2", "3"]),
    st.sampled_from(["plain", "volume", "lost", "device", "gated", "port"]),
    st.sampled_from(["default-scheduler", "bayplan", "fancy"]),
    st.sampled_from([0, 10]),
)


def waiting(number: int, kind: tuple[str, str, str, int]) -> list[KubeObject]:
    cpu, what, scheduler, priority = kind
    pod = make_pod(f"p{number:02d}").cpu(cpu).scheduler(scheduler).priority(priority)
    match what:
        case "volume":
            claim = make_pvc(f"c{number}").storage_class("fast").obj()
            return [claim, pod.claim(f"c{number}").obj()]
        case "lost":
            return [pod.claim(f"lost-{number}").obj()]
        case "device":
            return [make_resource_claim(f"d{number}").obj(), pod.device(f"d{number}").obj()]
        case "gated":
            return [pod.gate("example.com/wait").obj()]
        case "port":
            return [pod.host_port(80).obj()]
        case _:
            return [pod.obj()]


def cluster(sizes: list[str], kinds: list[tuple[str, str, str, int]]) -> list[KubeObject]:
    objects: list[KubeObject] = [
        make_storage_class("fast", DRIVER).waits().obj(),
        make_device_class("gpu").obj(),
    ]
    for number, size in enumerate(sizes):
        objects.append(make_node(f"n{number}").capacity(cpu=size, pods=4).obj())
        if number % 2:
            objects.append(make_csinode(f"n{number}").driver(DRIVER, 1).obj())
    return objects + [obj for n, kind in enumerate(kinds) for obj in waiting(n, kind)]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from(["1", "3", "8"]), min_size=1, max_size=4),
    st.lists(KINDS, min_size=1, max_size=12),
)
def test_every_pod_is_told_once_and_as_if_by_itself(
    sizes: list[str], kinds: list[tuple[str, str, str, int]]
) -> None:
    profile = Profile().by_scheduler()
    snapshot = Snapshot(cluster(sizes, kinds), profile=profile)
    pods = list_pending_pods(snapshot)
    bench = RulesComparison(snapshot, None, Profile().plugins)
    found = explain_pods(snapshot, pods, bench, with_fixes=False)
    assert sorted(key for one in found for key in one.pods) == sorted(pod.key for pod in pods)
    told = {key: outcome_of(one, {})[0] for one in found for key in one.pods}
    assert set(told.values()) <= set(OUTCOMES)
    fitting = sum(end == "fit" for end in told.values())
    assert sum(one.nodes.total() for one in found) == fitting
    assert told == alone(Snapshot(cluster(sizes, kinds), profile=profile), pods)


def alone(snapshot: Snapshot, pods: list[Pod]) -> dict[str, str]:
    """How it ends for each pod, placed one after another and each explained by itself."""
    ends = {}
    for pod in pods:
        found = explain(snapshot, pod, with_fixes=False)
        if pod.spec.scheduling_gates:
            ends[pod.key] = "are gated"
        elif found.node is not None:
            ends[pod.key] = "fit"
            snapshot.assume(pod, snapshot.decision_on(pod, found.node))
        else:
            ends[pod.key] = "cannot be judged" if found.unjudged else "fit nowhere"
    return ends
