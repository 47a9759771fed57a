"""Limits that cannot be any, and nodes over their limits: told once, counted while they last."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from bayplan.fit import Profile, Snapshot
from bayplan.fit.hints import ClusterEvent
from bayplan.kube.gates import FeatureGates
from bayplan.kube.meta import KubeObject
from bayplan.kube.nodes import Node
from bayplan.observe import LimitCollector, LimitWatch, Observer
from tests.builders import make_csinode, make_node, make_pod, make_pv, make_pvc

KEY = "attachable-volumes-aws-ebs"
EBS = "kubernetes.io/aws-ebs"
DRIVER = "disk.example.com"


class LimitWatchFixture:
    """A snapshot with a limit watch, and its reports."""

    def __init__(self, *objects: KubeObject, profile: Profile | None = None) -> None:
        self.snapshot = Snapshot(objects, profile=profile)
        self.told: list[tuple[str, str, str]] = []
        self.registry = CollectorRegistry()
        self.watch = LimitWatch(self.snapshot, self._tell)
        self.registry.register(LimitCollector("bayplan", lambda: self.watch))
        self.watch.start(Observer(self.snapshot))

    def _tell(self, node: Node, reason: str, text: str) -> None:
        self.told.append((node.name, reason, text))

    def put(self, obj: KubeObject) -> None:
        before = self.snapshot.get(type(obj), obj.key)
        self.snapshot.put(obj)
        self.watch.on_event(ClusterEvent.of(before, obj))

    def count(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(f"bayplan_{name}", labels) or 0.0


def node(amount: str | None) -> Node:
    limits = {} if amount is None else {KEY: amount}
    return make_node("n").capacity({"cpu": "9", "pods": "99", **limits}).obj()


def with_volumes(count: int) -> list[KubeObject]:
    """Pods on the node, each with an EBS volume."""
    return [make_pod(f"p{i}").ebs(f"vol-{i}").node("n").obj() for i in range(count)]


def test_a_wrong_amount_is_told_once_and_again_when_it_is_another() -> None:
    it = LimitWatchFixture(node("-5"))
    assert [reason for _, reason, _ in it.told] == ["UnreadableAttachLimit"]
    assert "'-5' is not a valid attach limit" in it.told[0][2]
    it.put(node("-5"))
    assert len(it.told) == 1
    it.put(node("1500m"))
    assert len(it.told) == 2
    assert it.count("unreadable_attach_limits", key=KEY) == 1
    it.put(node("8"))
    assert it.count("unreadable_attach_limits", key=KEY) == 0
    it.put(node("-5"))
    assert len(it.told) == 3


def test_with_the_gate_off_nobody_reads_the_keys_and_nobody_is_told() -> None:
    for on in (True, False, True):
        it = LimitWatchFixture(
            node("-5"), profile=Profile(gates=FeatureGates({"AttachVolumeLimit": on}))
        )
        assert bool(it.told) is on
        assert bool(it.count("unreadable_attach_limits", key=KEY)) is on


def test_a_lowered_limit_is_told_with_how_many_there_are_and_counted_until_it_is_raised() -> None:
    it = LimitWatchFixture(node("8"), *with_volumes(6))
    assert not it.told
    it.put(node("4"))
    ((name, reason, text),) = it.told
    assert (name, reason) == ("n", "VolumeLimitExceeded")
    assert text.startswith(f"6 volumes of {EBS} are attached, over the limit 4")
    assert it.count("volumes_over_limit", driver=EBS) == 2
    it.put(node("3"))
    it.put(node("8"))
    assert len(it.told) == 2
    assert it.count("volumes_over_limit", driver=EBS) == 0


@pytest.mark.parametrize("before", [8, None])
def test_a_lowered_limit_of_a_csinode_is_told(before: int | None) -> None:
    claims = [make_pvc(f"c{i}").volume(f"v{i}").obj() for i in range(3)]
    volumes = [make_pv(f"v{i}").csi(DRIVER, f"h{i}").bound_to(f"c{i}").obj() for i in range(3)]
    pods = [make_pod(f"p{i}").claim(f"c{i}").node("n").obj() for i in range(3)]
    first = make_csinode("n").driver(DRIVER, before).obj()
    it = LimitWatchFixture(node(None), first, *claims, *volumes, *pods)
    assert not it.told
    it.put(make_csinode("n").driver(DRIVER, 1).obj())
    assert it.told[0][2].startswith(f"3 volumes of {DRIVER} are attached, over the limit 1")


def test_what_is_over_its_limit_from_the_beginning_is_told() -> None:
    assert LimitWatchFixture(node("2"), *with_volumes(3)).told[0][1] == "VolumeLimitExceeded"


def test_a_node_that_is_gone_is_forgotten() -> None:
    it = LimitWatchFixture(node("-5"), *with_volumes(3))
    it.snapshot.delete(Node, "n")
    it.watch.on_event(ClusterEvent.of(node("-5"), None))
    assert it.count("unreadable_attach_limits", key=KEY) == 0
