"""What is assumed lies over what is observed, until it is observed, forgotten or over."""

from __future__ import annotations

import pytest

from bayplan.fit import ClaimBinding, Decision, Snapshot
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import PersistentVolume, PersistentVolumeClaim
from tests.builders import (
    PodBuilder,
    make_csinode,
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    selector,
)

DRIVER = "ebs.csi.aws.com"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
HOST = "kubernetes.io/hostname"


def node(name: str, cpu: str = "4") -> Node:
    return make_node(name).capacity(cpu=cpu, memory="8Gi", pods=110).label(HOST, name).obj()


def pod(name: str = "p", version: int = 1) -> PodBuilder:
    built = make_pod(name).cpu("1").uid(f"uid-{name}")
    built._built.metadata.resource_version = str(version)
    return built


def waiting_claim(version: int = 1) -> PersistentVolumeClaim:
    claim = make_pvc("c").storage_class("fast").size("1Gi").obj()
    claim.metadata.resource_version = str(version)
    return claim


def with_claim() -> list[KubeObject]:
    csinodes = [make_csinode(name).driver(DRIVER, 9).obj() for name in ("n1", "n2")]
    fast = make_storage_class("fast", DRIVER).waits().obj()
    return [node("n1"), node("n2"), *csinodes, fast, waiting_claim()]


def static(*claims: PersistentVolumeClaim, volumes: int = 1) -> list[KubeObject]:
    manual = make_storage_class("manual", "kubernetes.io/no-provisioner").waits().obj()
    names = [f"v{index}" for index in range(volumes)]
    pvs = [make_pv(name).size("5Gi").storage_class("manual").available().obj() for name in names]
    return [node("n1"), manual, *pvs, *claims]


def manual_claim(name: str, size: str = "1Gi") -> PersistentVolumeClaim:
    return make_pvc(name).storage_class("manual").size(size).obj()


def selected_node(snapshot: Snapshot) -> str | None:
    claim = snapshot.get(PersistentVolumeClaim, "default/c")
    assert claim is not None
    return claim.metadata.annotations.get(SELECTED_NODE)


def reserved_for(snapshot: Snapshot, volume: str) -> str | None:
    found = snapshot.get(PersistentVolume, volume)
    assert found is not None
    return found.spec.claim_ref.name if found.spec.claim_ref else None


def test_an_update_of_an_assumed_pods_status_keeps_it_assumed() -> None:
    snapshot = Snapshot([node("n1", cpu="1"), pod().obj()])
    token = snapshot.assume(pod().obj(), Decision("n1"))
    snapshot.put(pod(version=2).condition("PodScheduled", reason="x").obj())
    assert snapshot.decide(make_pod("q").cpu("1").obj()).node is None
    assert snapshot.assumptions() == [token]
    shown = snapshot.get(Pod, "default/p")
    assert shown is not None
    assert (shown.spec.node_name, shown.metadata.resource_version) == ("n1", "2")


def test_a_pod_that_is_seen_on_its_node_is_assumed_no_more() -> None:
    snapshot = Snapshot([node("n1"), node("n2")])
    token = snapshot.assume(pod().obj(), Decision("n1"))
    snapshot.put(pod().node("n2").obj())
    assert snapshot.assumptions() == []
    snapshot.forget(token)
    assert [one.name for one in snapshot.pods_on("n2")] == ["p"]
    assert snapshot.pods_on("n1") == []


@pytest.mark.parametrize(
    "seen", [pod().phase("Failed").obj(), make_pod("p").cpu("1").uid("another").obj()]
)
def test_a_pod_that_ended_or_is_another_is_assumed_no_more(seen: Pod) -> None:
    snapshot = Snapshot([node("n1")])
    snapshot.assume(pod().obj(), Decision("n1"))
    snapshot.put(seen)
    assert snapshot.assumptions() == []
    assert snapshot.pods_on("n1") == []


def test_pods_on_a_node_and_get_show_an_assumed_pod_alike() -> None:
    snapshot = Snapshot([node("n1"), pod().obj()])
    snapshot.assume(pod().obj(), Decision("n1"))
    assert snapshot.pods_on("n1") == [snapshot.get(Pod, "default/p")]
    assert [one.spec.node_name for one in snapshot.pods_on("n1")] == ["n1"]


def test_forgetting_gives_a_claim_back_as_it_was() -> None:
    snapshot = Snapshot(with_claim())
    one = pod().claim("c").obj()
    token = snapshot.assume(one, snapshot.decision_on(one, "n2"))
    assert selected_node(snapshot) == "n2"
    snapshot.forget(token)
    snapshot.forget(token)
    assert selected_node(snapshot) is None
    snapshot.put(node("n2", cpu="0"))
    assert snapshot.decide(one).node == "n1"


def test_forgetting_keeps_what_has_changed_since() -> None:
    snapshot = Snapshot(with_claim())
    one = pod().claim("c").obj()
    token = snapshot.assume(one, snapshot.decision_on(one, "n2"))
    snapshot.put(waiting_claim(version=7))
    assert selected_node(snapshot) == "n2"
    snapshot.forget(token)
    claim = snapshot.get(PersistentVolumeClaim, "default/c")
    assert claim is not None
    assert (claim.metadata.resource_version, claim.metadata.annotations) == ("7", {})


def test_what_a_claim_says_itself_wins() -> None:
    snapshot = Snapshot(with_claim())
    one = pod().claim("c").obj()
    token = snapshot.assume(one, snapshot.decision_on(one, "n2"))
    said = waiting_claim()
    said.metadata.annotations = {SELECTED_NODE: "n1"}
    snapshot.put(said)
    snapshot.forget(token)
    assert selected_node(snapshot) == "n1"


def test_a_claim_stays_selected_when_its_pod_is_seen_before_it() -> None:
    snapshot = Snapshot(with_claim())
    one = pod().claim("c").obj()
    token = snapshot.assume(one, snapshot.decision_on(one, "n2"))
    snapshot.put(pod().claim("c").node("n2").obj())
    assert selected_node(snapshot) == "n2"
    assert snapshot.assumptions() == [token]
    bound = make_pvc("c").storage_class("fast").size("1Gi").volume("v").obj()
    snapshot.put(bound)
    assert snapshot.assumptions() == []


def test_what_is_assumed_of_claims_is_what_the_filter_found() -> None:
    small = manual_claim("small")
    small.spec.selector = selector(disk="ssd")
    objects = static(manual_claim("big", "5Gi"), small, volumes=2)
    fast = make_pv("v0").size("5Gi").storage_class("manual").available().label("disk", "ssd").obj()
    snapshot = Snapshot([*objects, fast])
    decision = snapshot.place(pod().claim("big").claim("small").obj())
    assert set(decision.bindings) == {
        ClaimBinding("default/small", "v0"),
        ClaimBinding("default/big", "v1"),
    }
    assert (reserved_for(snapshot, "v0"), reserved_for(snapshot, "v1")) == ("small", "big")


def test_a_volume_is_reserved_once_and_given_back() -> None:
    snapshot = Snapshot(static(manual_claim("a"), manual_claim("b")))
    first, second = pod("first").claim("a").obj(), pod("second").claim("b").obj()
    decision, stale = snapshot.decide(first), snapshot.decide(second)
    token = snapshot.assume(first, decision)
    assert snapshot.decide(second).node is None
    with pytest.raises(ValueError, match="volume v0 cannot be reserved"):
        snapshot.assume(second, stale)
    snapshot.forget(token)
    assert reserved_for(snapshot, "v0") is None
    assert snapshot.place(second).bindings == (ClaimBinding("default/b", "v0"),)


def test_a_volume_is_given_back_with_its_claim_or_when_the_claim_gets_another() -> None:
    objects = static(manual_claim("a"), volumes=2)
    one = pod().claim("a").obj()
    for seen in (None, make_pvc("a").storage_class("manual").size("1Gi").volume("v1").obj()):
        snapshot = Snapshot(objects)
        snapshot.assume(one, Decision("n1", (ClaimBinding("default/a", "v0"),)))
        if seen is None:
            snapshot.delete(PersistentVolumeClaim, "default/a")
        else:
            snapshot.put(seen)
        assert reserved_for(snapshot, "v0") is None


def test_a_pod_that_is_deleted_holds_nothing() -> None:
    snapshot = Snapshot(with_claim())
    one = pod().claim("c").obj()
    snapshot.assume(one, snapshot.decision_on(one, "n2"))
    snapshot.delete(Pod, one.key)
    assert snapshot.assumptions() == []
    assert selected_node(snapshot) is None


def test_what_is_not_seen_by_its_deadline_is_forgotten() -> None:
    snapshot = Snapshot([node("n1")])
    late = snapshot.assume(pod("late").obj(), Decision("n1"))
    binding = snapshot.assume(pod("binding").obj(), Decision("n1"))
    snapshot.finish_binding(late, 30.0)
    assert snapshot.expire(29.9) == []
    assert snapshot.expire(30.0) == [late]
    assert snapshot.assumptions() == [binding]
    assert [one.name for one in snapshot.pods_on("n1")] == ["binding"]


@pytest.mark.parametrize("decision", [Decision(None), Decision("")])
def test_a_decision_without_a_node_cannot_be_assumed(decision: Decision) -> None:
    with pytest.raises(ValueError, match="names no node"):
        Snapshot([node("n1")]).assume(pod().obj(), decision)


def test_a_pod_is_on_one_node_only() -> None:
    snapshot = Snapshot([node("n1"), node("n2")])
    snapshot.assume(pod().obj(), Decision("n1"))
    with pytest.raises(ValueError, match="is on node n1 already"):
        snapshot.assume(pod().obj(), Decision("n2"))


def test_what_informers_say_during_a_fork_is_there_after_it_in_order() -> None:
    snapshot = Snapshot([node("n1")])
    with snapshot.fork():
        snapshot.put(node("template"))
        snapshot.observe(node("n2"))
        snapshot.observe(node("n3"))
        snapshot.observe_gone(Node, "n3")
        with snapshot.fork():
            pass
        assert snapshot.get(Node, "n2") is None
    assert sorted(one.name for one in snapshot.objects()) == ["n1", "n2"]


def test_an_older_observation_is_ignored() -> None:
    snapshot = Snapshot([node("n1")])
    snapshot.observe(pod(version=10).node("n1").obj())
    snapshot.observe(pod(version=9).obj())
    assert [one.name for one in snapshot.pods_on("n1")] == ["p"]


def test_forks_left_open_inside_a_fork_end_with_it() -> None:
    snapshot = Snapshot([node("n1")])
    with snapshot.fork():
        snapshot.put(node("n2"))
        snapshot.begin()
        snapshot.put(node("n3"))
    snapshot.put(node("n4"))
    with pytest.raises(RuntimeError, match="no fork is open"):
        snapshot.revert()
    assert sorted(one.name for one in snapshot.objects()) == ["n1", "n4"]


def test_a_pod_without_a_node_is_taken_by_its_word_inside_a_fork() -> None:
    snapshot = Snapshot([node("n1", cpu="1")])
    token = snapshot.assume(pod().obj(), Decision("n1"))
    with snapshot.fork():
        snapshot.put(pod().obj())
        assert snapshot.decide(make_pod("q").cpu("1").obj()).node == "n1"
    assert snapshot.assumptions() == [token]
    assert snapshot.decide(make_pod("q").cpu("1").obj()).node is None


def test_a_decision_among_some_nodes_is_the_best_of_them() -> None:
    snapshot = Snapshot([node("n1"), node("n2", cpu="8"), node("n3", cpu="1")])
    two = make_pod("p").cpu("2").obj()
    assert snapshot.decide(two).node == "n2"
    assert snapshot.decide(two, among=["n1", "n3", "gone"]).node == "n1"
    nowhere = snapshot.decide(two, among={"n3"})
    assert nowhere == Decision(None, plugins=frozenset({"NodeResourcesFit"}))
    assert snapshot.decide(two, among=()) == Decision(None)


def test_a_decision_for_nowhere_names_the_plugins_that_refused() -> None:
    tainted = make_node("n2").capacity(cpu="4", memory="8Gi", pods=9).taint("a", "b").obj()
    snapshot = Snapshot([node("n1"), tainted])
    decision = snapshot.decide(make_pod("p").cpu("5").obj())
    assert decision.plugins == {"NodeResourcesFit", "TaintToleration"}
    missing = snapshot.decide(make_pod("q").claim("gone").obj())
    assert missing.refused_before is not None
    assert missing.plugins == {"VolumeRestrictions"}


def test_one_node_is_asked_by_itself() -> None:
    snapshot = Snapshot([node("n1"), node("n2", cpu="1")])
    refusal = snapshot.refusal(make_pod("p").cpu("2").obj(), "n2")
    assert refusal is not None
    assert refusal.plugin == "NodeResourcesFit"
    assert snapshot.refusal(make_pod("p").cpu("2").obj(), "n1") is None


def test_a_decision_that_gives_two_claims_one_volume_is_refused() -> None:
    snapshot = Snapshot(static(manual_claim("a"), manual_claim("b")))
    bindings = tuple(ClaimBinding(f"default/{name}", "v0") for name in "ab")
    with pytest.raises(ValueError, match="v0 is to serve two claims"):
        snapshot.assume(pod().claim("a").claim("b").obj(), Decision("n1", bindings))
    assert reserved_for(snapshot, "v0") is None
    assert snapshot.pods_on("n1") == []
