"""Nothing hostile gets past the door: it is refused before anything is touched, or does no harm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bayplan.fit import Decision, Snapshot
from bayplan.fit.evaluation.ranks import Evaluation
from bayplan.fit.evaluation.verdicts import verdicts
from bayplan.fit.preemption import preempt
from bayplan.fit.profile import PluginSet
from bayplan.fit.state.cluster import TIE_BITS
from bayplan.kube.codec import ObjectError
from bayplan.kube.meta import KubeObject, ObjectMeta
from bayplan.kube.nodes import ContainerImage, Node
from bayplan.kube.pods import Pod
from bayplan.kube.storage import CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim
from bayplan.kube.workloads import PriorityClass
from tests.builders import (
    make_node,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    node_term,
    selector,
)

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(name: str = "n1", cpu: str = "4") -> Node:
    built = make_node(name).capacity(cpu=cpu, memory="8Gi", pods=9999)
    return built.label(HOST, name).zone("a").obj()


def bad_node() -> Node:
    bad = node()
    bad.status.allocatable["cpu"] = "abc"
    return bad


def bad_pod() -> Pod:
    bad = make_pod("there").cpu("1").node("n1").obj()
    bad.spec.containers[0].resources.requests["memory"] = "many"
    return bad


def bad_volume() -> PersistentVolume:
    bad = make_pv("v").size("1Gi").obj()
    bad.spec.capacity["storage"] = "large"
    return bad


def bad_claim() -> PersistentVolumeClaim:
    bad = make_pvc("c").size("1Gi").obj()
    bad.spec.resources.requests["storage"] = "large"
    return bad


def bad_image() -> Node:
    bad = node()
    bad.status.images = [ContainerImage(names=["app:1"], size_bytes=1 << 70)]
    return bad


def bad_capacity() -> CSIStorageCapacity:
    return CSIStorageCapacity(metadata=ObjectMeta(name="c", namespace="default"), capacity="x")


def bad_operator() -> Node:
    bad = node()
    bad.spec.taints = [{"key": "a"}]  # type: ignore[list-item]
    return bad


def bad_name() -> Node:
    bad = node()
    bad.metadata.name = 5  # type: ignore[assignment]
    return bad


def bad_affinity() -> Pod:
    bad = make_pod("there").obj()
    bad.spec.affinity = "near"  # type: ignore[assignment]
    return bad


BAD = [
    bad_node,
    bad_pod,
    bad_volume,
    bad_claim,
    bad_image,
    bad_capacity,
    bad_operator,
    bad_name,
    bad_affinity,
]


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("observed", [False, True])
def test_an_object_that_cannot_be_used_is_refused_and_changes_nothing(
    make: Callable[[], KubeObject], observed: bool
) -> None:
    there = make_pod("there").cpu("3").labels(app="web").node("n1").obj()
    snapshot = Snapshot([node(), there, make_pv("v").obj(), make_pvc("c").size("1Gi").obj()])
    spread = make_pod("p").cpu("1").labels(app="web").spread(ZONE).obj()
    before, names = snapshot.decide(spread), [one.key for one in snapshot.objects()]
    with pytest.raises(ObjectError):
        (snapshot.observe if observed else snapshot.put)(make())
    assert snapshot.decide(spread) == before
    assert [one.key for one in snapshot.objects()] == names
    assert Snapshot(snapshot.objects()).decide(spread) == before


def test_an_observed_object_is_refused_when_it_comes_and_not_when_the_fork_ends() -> None:
    snapshot = Snapshot([node()])
    with snapshot.fork(), pytest.raises(ObjectError, match=r"Node n1: status\.allocatable"):
        snapshot.observe(bad_node())


@pytest.mark.parametrize("written", ["1e30", "9223372036854775807"])
def test_a_published_limit_of_any_size_is_read(written: str) -> None:
    huge = node()
    huge.status.allocatable["attachable-volumes-aws-ebs"] = written
    assert Snapshot([huge]).decide(make_pod("p").ebs("vol-1").obj()).node == "n1"


def test_an_image_of_any_size_is_scored() -> None:
    huge = node()
    huge.status.images = [ContainerImage(names=["app:1"], size_bytes=2**63 - 1)]
    pod = make_pod("p").cpu("1").obj()
    pod.spec.containers[0].image = "app:1"
    assert Snapshot([huge]).decide(pod).node == "n1"


@pytest.mark.parametrize("volume", ["aws://[::1/vol-1", "aws://", "aws://a/b/c?d#e"])
def test_a_disk_of_any_name_is_counted(volume: str) -> None:
    assert Snapshot([node()]).place(make_pod("p").ebs(volume).obj()).node == "n1"


def test_no_number_of_huge_requests_wraps_around_to_fit() -> None:
    pods = [make_pod(f"h{index}").memory("4Pi").node("n1").obj() for index in range(4096)]
    snapshot = Snapshot([node(), *pods])
    small = make_pod("p").memory("1Gi").cpu("1").obj()
    assert snapshot.decide(small).node is None
    for pod in pods:
        snapshot.delete(Pod, pod.key)
    assert snapshot.decide(small).node == "n1"
    assert snapshot.cluster.resources.free[0].tolist() == [9999, 4000, 8 << 30, 0]
    assert snapshot.cluster.resources.scored.left[0].tolist() == [4000, 8 << 30]
    assert snapshot.cluster.resources.scored.used[0].tolist() == [0.0, 0.0]


def test_a_negative_request_gives_nothing() -> None:
    giver = make_pod("giver").cpu("1").node("n1").obj()
    giver.spec.containers[0].resources.requests["memory"] = "-64Gi"
    snapshot = Snapshot([node(), giver])
    assert snapshot.decide(make_pod("p").memory("16Gi").obj()).node is None


def test_a_node_that_was_changed_after_it_was_put_counts_when_it_is_put_again() -> None:
    one, pod = node(), make_pod("p").cpu("1").obj()
    snapshot = Snapshot([one])
    one.spec.unschedulable = True
    one.metadata.labels[ZONE] = "b"
    in_zone = make_pod("q").cpu("1").node_affinity(node_term(ZONE, "In", "a")).obj()
    assert snapshot.decide(pod).node == "n1"
    assert snapshot.decide(in_zone).node == "n1"
    snapshot.put(one)
    assert snapshot.decide(pod).node is None


def test_what_was_got_and_changed_counts_when_it_is_put() -> None:
    snapshot = Snapshot([node()])
    got = snapshot.get(Node, "n1")
    assert got is not None
    got.spec.unschedulable = True
    assert snapshot.decide(make_pod("p").cpu("1").obj()).node == "n1"
    snapshot.put(got)
    assert snapshot.decide(make_pod("p").cpu("1").obj()).node is None


def test_a_pod_is_asked_about_as_it_now_is() -> None:
    snapshot, pod = Snapshot([node()]), make_pod("p").cpu("1").obj()
    assert snapshot.decide(pod).node == "n1"
    pod.spec.containers[0].resources.requests["cpu"] = "5"
    assert snapshot.decide(pod).node is None


def test_a_pod_that_was_changed_after_it_was_put_leaves_what_it_took() -> None:
    pod = make_pod("p").cpu("4").labels(app="web").claim("c").node("n1").obj()
    snapshot = Snapshot([node(), pod, make_pvc("c").obj()])
    pod.metadata.labels["app"] = "db"
    pod.spec.containers[0].resources.requests["cpu"] = "1"
    pod.spec.volumes.clear()
    assert snapshot.decide(make_pod("q").cpu("1").obj()).node is None
    away = make_pod("r").anti_affinity(HOST, selector(app="web")).obj()
    assert snapshot.decide(away).node is None
    snapshot.delete(Pod, "default/p")
    assert snapshot.cluster.pods.by_claim.of("default/c") == frozenset()
    assert snapshot.decide(make_pod("q").cpu("4").obj()).node == "n1"


@pytest.mark.parametrize("later", ["1", "many"])
def test_a_pod_that_was_changed_after_it_was_put_comes_back_as_it_was_put(later: str) -> None:
    pod = make_pod("p").cpu("4").node("n1").obj()
    snapshot = Snapshot([node(), pod])
    with snapshot.fork():
        pod.spec.containers[0].resources.requests["cpu"] = later
        snapshot.delete(Pod, "default/p")
        assert snapshot.decide(make_pod("q").cpu("1").obj()).node == "n1"
    assert snapshot.decide(make_pod("q").cpu("1").obj()).node is None


@pytest.mark.parametrize("later", ["1", "many"])
def test_a_pod_that_was_changed_while_assumed_is_nominated_as_it_was_put(later: str) -> None:
    waiting = make_pod("p").cpu("4").nominated("n1").obj()
    snapshot = Snapshot([node(), node("n2"), waiting])
    token = snapshot.assume(make_pod("p").cpu("4").obj(), Decision("n2"))
    waiting.spec.containers[0].resources.requests["cpu"] = later
    snapshot.forget(token)
    assert snapshot.decide(make_pod("q").cpu("1").obj()).node == "n2"
    assert snapshot.assumptions() == []


def test_a_pod_that_was_changed_after_it_was_observed_in_a_fork_is_put_as_it_was() -> None:
    snapshot = Snapshot([node()])
    first, second = (make_pod(name).cpu("2").node("n1").obj() for name in "ab")
    with snapshot.fork():
        snapshot.observe(first)
        snapshot.observe(second)
        first.spec.containers[0].resources.requests["cpu"] = "many"
    assert snapshot.decide(make_pod("q").cpu("1").obj()).node is None


def test_a_node_in_a_namespace_is_the_node_of_that_name() -> None:
    snapshot, strange = Snapshot(), node(cpu="1")
    strange.metadata.namespace = "default"
    with snapshot.fork():
        snapshot.put(strange)
        assert [one.key for one in snapshot.objects()] == ["n1"]
        snapshot.put(node(cpu="4"))
        assert snapshot.decide(make_pod("p").cpu("2").obj()).node == "n1"
    assert list(snapshot.objects()) == []


def test_a_node_without_a_name_is_refused() -> None:
    with pytest.raises(ObjectError, match=r"metadata\.name"):
        Snapshot([node("")])


@pytest.mark.parametrize("started", ["yesterday", "", "2026-01-01T25:00:00Z"])
def test_a_pod_that_started_nobody_knows_when_can_be_preempted(started: str) -> None:
    victim = make_pod("v").cpu("4").priority(0).node("n1").started(started).obj()
    snapshot = Snapshot([node(), victim])
    assert preempt(snapshot, make_pod("p").cpu("4").priority(9).obj()).node == "n1"


def test_a_resource_version_of_any_length_is_compared() -> None:
    snapshot = Snapshot()
    for version, unschedulable in (("9" * 5000, False), ("1" + "0" * 5000, True), ("7", False)):
        seen = node()
        seen.metadata.resource_version, seen.spec.unschedulable = version, unschedulable
        snapshot.observe(seen)
    assert snapshot.decide(make_pod("p").cpu("1").obj()).node is None


def test_a_claim_that_was_changed_after_it_was_put_is_compared_with_what_was_put() -> None:
    claim = make_pvc("c").storage_class("fast").size("1Gi").obj()
    snapshot = Snapshot([node(), claim])
    claim.spec.volume_name = "v"
    snapshot.put(claim)
    snapshot.delete(PersistentVolumeClaim, "default/c")
    assert snapshot.cluster.storage.claims_of_volume.of("v") == frozenset()


def test_the_lowest_of_several_default_priorities_counts_whatever_came_first() -> None:
    classes = [
        PriorityClass(metadata=ObjectMeta(name=name), value=value, global_default=True)
        for name, value in (("a", 100), ("b", 1))
    ]
    pod = make_pod("p").obj()
    for order in (classes, classes[::-1]):
        snapshot = Snapshot(order)
        assert snapshot.priority(pod) == 1
        with snapshot.fork():
            snapshot.delete(PriorityClass, "b")
        assert snapshot.priority(pod) == 1


def test_of_several_volumes_reserved_for_a_claim_the_first_by_name_counts() -> None:
    static = make_storage_class("static", "kubernetes.io/no-provisioner").waits().obj()
    claim = make_pvc("c").storage_class("static").size("1Gi").obj()

    def reserved(name: str, host: str) -> PersistentVolume:
        volume = make_pv(name).size("5Gi").storage_class("static").bound_to("c")
        return volume.node_affinity(node_term(HOST, "In", host)).obj()

    volumes = [reserved("v1", "n1"), reserved("v2", "n2")]
    for order in (volumes, volumes[::-1]):
        snapshot = Snapshot([node("n1"), node("n2"), static, claim, *order])
        with snapshot.fork():
            snapshot.delete(PersistentVolume, "v1")
        assert snapshot.decide(make_pod("p").claim("c").obj()).node == "n1"


def test_weights_count_once_in_ranks_and_in_verdicts() -> None:
    plugins = PluginSet(scores=(("NodeResourcesFit", 7), ("ImageLocality", 3)))
    snapshot = Snapshot([node("n1"), node("n2", cpu="64")])
    evaluation = snapshot.evaluation(make_pod("p").cpu("1").obj(), plugins)
    assert isinstance(evaluation, Evaluation)
    evaluation.refresh()
    totals = {name: scores["total"] for name, scores in verdicts(evaluation).scores.items()}
    slots = snapshot.cluster.slots.by_name
    ranks = {name: int(evaluation.ranks[slot]) >> TIE_BITS for name, slot in slots.items()}
    assert ranks == totals


def test_an_update_of_a_pods_status_counts_nothing_anew() -> None:
    snapshot = Snapshot([node(), make_pod("p").cpu("1").node("n1").obj()])
    seen = snapshot.cluster.usage_changes.end
    snapshot.put(make_pod("p").cpu("1").node("n1").phase("Running").obj())
    assert snapshot.cluster.usage_changes.end == seen
    shown = snapshot.get(Pod, "default/p")
    assert shown is not None
    assert shown.status.phase == "Running"
    snapshot.put(make_pod("p").cpu("1").node("n1").terminating().obj())
    assert snapshot.cluster.usage_changes.end > seen
