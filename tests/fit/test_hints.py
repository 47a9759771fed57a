"""Queueing hints: a pod that waits is woken by whatever may help it, and by little else."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.fit import PluginSet, Profile, Snapshot
from bayplan.fit.hints import ClusterEvent, may_unblock
from bayplan.fit.plugins.node_affinity import AddedAffinity
from bayplan.fit.plugins.node_resources_fit.arguments import ResourceFitSettings
from bayplan.fit.requirements.default_spread import SpreadDefault, SpreadDefaults
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import NodeSelector
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import compile_node_selector
from tests.builders import (
    make_attachment,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    name_term,
    node_term,
    selector,
)
from tests.fit.random_clusters import random_object, random_pod

pytestmark = pytest.mark.whole


Change = tuple[int, bool]
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
PARTICULAR = PluginSet(
    args=(
        ResourceFitSettings(ignored_resources=frozenset({"example.com/gpu"})),
        SpreadDefaults((SpreadDefault(1, ZONE, must_hold=True, min_domains=2),)),
        AddedAffinity(compile_node_selector(NodeSelector([node_term(ZONE, "In", "a", "b")]))),
    )
)
PROFILES = (
    Profile(),
    Profile.kubernetes(volume_limit_scaling=True),
    Profile(plugins=PARTICULAR),
)


@settings(max_examples=300)
@given(
    seeds=st.lists(st.integers(0, 2**32), min_size=15, max_size=60),
    changes=st.lists(st.tuples(st.integers(0, 2**32), st.booleans()), min_size=1, max_size=12),
    probes=st.integers(0, 2**32),
    profile=st.sampled_from(PROFILES),
)
def test_whatever_makes_a_refused_pod_fit_wakes_it(
    seeds: list[int], changes: list[Change], probes: int, profile: Profile
) -> None:
    snapshot = Snapshot((random_object(random.Random(seed)) for seed in seeds), profile=profile)
    pods = [random_pod(random.Random(probes + index)) for index in range(4)]
    for index, pod in enumerate(pods):
        pod.metadata.name, pod.spec.node_name = f"probe{index}", ""
    for seed, deletes in changes:
        obj = random_object(random.Random(seed))
        before = snapshot.get(type(obj), obj.key)
        if deletes and before is None:
            continue
        decisions = [(pod, snapshot.decide(pod)) for pod in pods]
        if deletes:
            snapshot.delete(type(obj), obj.key)
        else:
            snapshot.put(obj)
        event = ClusterEvent.of(before, None if deletes else obj)
        for pod, decision in decisions:
            if decision.node is None and snapshot.decide(pod).node is not None:
                assert may_unblock(snapshot, pod, decision.plugins, event), (decision, event)


def small() -> KubeObject:
    """A node that is too small for most."""
    return make_node("small").capacity(cpu="1", memory="1Gi", pods=9).label(HOST, "small").obj()


def large() -> KubeObject:
    """A node that is not."""
    return make_node("large").capacity(cpu="9", memory="9Gi", pods=9).label(HOST, "large").obj()


def test_a_pod_that_lacks_cpu_waits_for_a_node_or_a_pod_that_has_some() -> None:
    snapshot = Snapshot([small()])
    pod = make_pod("p").cpu("2").obj()
    plugins = {"NodeResourcesFit"}
    leaving = make_pod("other").cpu("1").node("small").obj()
    pending = make_pod("pending").cpu("1").obj()
    helps = [ClusterEvent.of(None, large()), ClusterEvent.of(leaving, None)]
    does_not = [
        ClusterEvent.of(None, small()),
        ClusterEvent.of(small(), small()),
        ClusterEvent.of(pending, None),
        ClusterEvent.of(None, leaving),
        ClusterEvent.of(None, make_pvc("c").obj()),
    ]
    assert [may_unblock(snapshot, pod, plugins, event) for event in helps] == [True, True]
    assert not any(may_unblock(snapshot, pod, plugins, event) for event in does_not)


def test_a_pod_that_waits_for_its_claim_is_woken_by_that_claim_alone() -> None:
    snapshot = Snapshot([small()])
    pod = make_pod("p").claim("mine").obj()
    plugins = {"VolumeRestrictions"}
    assert may_unblock(snapshot, pod, plugins, ClusterEvent.of(None, make_pvc("mine").obj()))
    assert not may_unblock(snapshot, pod, plugins, ClusterEvent.of(None, make_pvc("other").obj()))
    assert not may_unblock(snapshot, pod, plugins, ClusterEvent.of(make_pvc("mine").obj(), None))


def test_a_pod_that_is_kept_out_is_woken_by_the_pod_that_keeps_it_out() -> None:
    snapshot = Snapshot([small()])
    pod = make_pod("p").labels(app="web").obj()
    keeper = make_pod("k").node("small").anti_affinity(HOST, selector(app="web")).obj()
    stranger = make_pod("s").node("small").anti_affinity(HOST, selector(app="db")).obj()
    assert may_unblock(snapshot, pod, {"InterPodAffinity"}, ClusterEvent.of(keeper, None))
    assert not may_unblock(snapshot, pod, {"InterPodAffinity"}, ClusterEvent.of(stranger, None))


def test_a_nominated_pod_that_goes_wakes_those_that_made_room_for_it() -> None:
    snapshot = Snapshot([small()])
    pod = make_pod("p").cpu("1").obj()
    nominated = make_pod("n").cpu("1").nominated("small").obj()
    cleared = make_pod("n").cpu("1").obj()
    assert may_unblock(snapshot, pod, {"NodeResourcesFit"}, ClusterEvent.of(nominated, None))
    assert may_unblock(snapshot, pod, {"NodeResourcesFit"}, ClusterEvent.of(nominated, cleared))


def test_a_forgotten_pod_wakes_those_that_its_claims_left_without_a_volume() -> None:
    manual = make_storage_class("manual", "kubernetes.io/no-provisioner").waits().obj()
    volume = make_pv("v").size("5Gi").storage_class("manual").available().obj()
    claims = [make_pvc(name).storage_class("manual").size("1Gi").obj() for name in "ab"]
    snapshot = Snapshot([small(), manual, volume, *claims])
    first, second = (make_pod(f"of-{name}").claim(name).obj() for name in "ab")
    token = snapshot.assume(first, snapshot.decide(first))
    plugins = snapshot.decide(second).plugins
    assumed = snapshot.get(Pod, first.key)
    snapshot.forget(token)
    assert may_unblock(snapshot, second, plugins, ClusterEvent.of(assumed, None))
    assert snapshot.decide(second).node == "small"


def test_a_pod_that_brings_a_volume_wakes_those_that_share_it() -> None:
    driver = "ebs.csi.aws.com"
    volumes = [make_pv(f"v{n}").csi(driver, f"h{n}").bound_to(f"c{n}").obj() for n in "12"]
    claims = [make_pvc(f"c{n}").volume(f"v{n}").obj() for n in "12"]
    attached = make_attachment("va", driver, "small", "v1").obj()
    csinode = make_csinode("small").driver(driver, 1).obj()
    objects = [small(), csinode, attached, *volumes, *claims]
    snapshot = Snapshot(objects, profile=Profile.kubernetes())  # the attached volume counts again
    pod = make_pod("p").claim("c1").obj()
    plugins = snapshot.decide(pod).plugins
    assert plugins == {"NodeVolumeLimits"}
    user, other = (make_pod(f"u{n}").claim(f"c{n}").node("small").obj() for n in "12")
    snapshot.put(user)
    assert may_unblock(snapshot, pod, plugins, ClusterEvent.of(None, user))
    assert not may_unblock(snapshot, pod, plugins, ClusterEvent.of(None, other))
    assert snapshot.decide(pod).node == "small"


@pytest.mark.parametrize("plugins", [set(), {"SomebodyElses"}])
def test_when_it_is_not_known_who_refused_everything_wakes(plugins: set[str]) -> None:
    pod = make_pod("p").obj()
    assert may_unblock(
        Snapshot([small()]), pod, plugins, ClusterEvent.of(None, make_pvc("c").obj())
    )


def test_a_pod_is_woken_by_its_own_change_unless_only_its_status_is_new() -> None:
    snapshot = Snapshot([small()])
    pod = make_pod("p").cpu("2").obj()
    smaller = make_pod("p").cpu("1").obj()
    status = make_pod("p").condition("PodScheduled", reason="Unschedulable").obj().status
    distinct = msgspec.structs.replace(pod, status=status)
    assert may_unblock(snapshot, pod, {"NodeResourcesFit"}, ClusterEvent.of(pod, smaller))
    assert not may_unblock(snapshot, pod, {"NodeResourcesFit"}, ClusterEvent.of(pod, distinct))


def test_a_decision_names_the_plugins_that_refused_beside_nominated_pods_too() -> None:
    tainted = make_node("tainted").capacity(cpu="1").taint("k", "v", "NoSchedule").obj()
    nominated = make_pod("n").cpu("1").nominated("small").obj()
    decision = Snapshot([small(), tainted, nominated]).decide(make_pod("p").cpu("1").obj())
    assert decision.plugins == {"NodeResourcesFit", "TaintToleration"}


def test_a_pod_that_names_its_nodes_is_refused_by_affinity_on_all_others() -> None:
    pod = make_pod("p").node_affinity(name_term("gone")).obj()
    assert Snapshot([small()]).decide(pod).plugins == {"NodeAffinity"}
