"""NodeDeclaredFeatures: off by default, and pods of features go where those are declared."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from bayplan.fit import PluginSet, Profile, Snapshot
from bayplan.fit.explanation import explain
from bayplan.fit.hints import ClusterEvent, may_unblock
from bayplan.fit.plugins.node_declared_features import (
    HOST_NETWORK_USERS,
    NAME,
    REASON,
    RESTART_ALL,
)
from bayplan.fit.plugins.registry import FILTERS
from bayplan.kube.codec import decode_object
from bayplan.kube.nodes import Node
from bayplan.kube.pods import ContainerRestartRule, Pod
from bayplan.scheduler.config.plugins import choose
from bayplan.scheduler.config.wire import Plugin, PluginChoice, Plugins
from tests.builders import make_node, make_pod

ON = PluginSet(filters=FILTERS | {NAME})


def declaring(name: str, *features: str) -> Node:
    node = make_node(name).obj()
    return replace(node, status=replace(node.status, declared_features=list(features)))


def restarting() -> Pod:
    pod = make_pod("p").obj()
    rules = [ContainerRestartRule(action="RestartAllContainers")]
    containers = [replace(one, restart_rules=rules) for one in pod.spec.containers]
    return replace(pod, spec=replace(pod.spec, containers=containers))


def own_users(*, host_network: bool = True) -> Pod:
    pod = make_pod("p").obj()
    return replace(pod, spec=replace(pod.spec, host_network=host_network, host_users=False))


def node_for(pod: Pod, *nodes: Node, plugins: PluginSet | None = ON) -> str | None:
    return Snapshot(nodes).decide(pod, plugins=plugins).node


@pytest.mark.parametrize(
    ("pod", "feature"), [(restarting(), RESTART_ALL), (own_users(), HOST_NETWORK_USERS)]
)
def test_a_pod_goes_where_its_feature_is_declared(pod: Pod, feature: str) -> None:
    assert node_for(pod, declaring("old"), declaring("new", "Other", feature)) == "new"
    assert node_for(pod, declaring("old", "Other")) is None


def test_pods_without_such_needs_go_anywhere() -> None:
    assert node_for(make_pod().obj(), declaring("old")) == "old"
    assert node_for(own_users(host_network=False), declaring("old")) == "old"


def test_it_is_off_by_default() -> None:
    assert NAME not in FILTERS
    assert node_for(restarting(), declaring("old"), plugins=None) == "old"


def test_pods_that_differ_only_in_what_they_need_are_told_apart() -> None:
    snapshot = Snapshot([declaring("old")], profile=Profile(plugins=ON))
    plain = replace(own_users(), spec=replace(own_users().spec, host_users=True))
    assert snapshot.decide(plain).node == "old"
    assert snapshot.decide(own_users()).node is None


def test_a_node_that_declares_more_is_asked_again() -> None:
    snapshot = Snapshot([declaring("n")], profile=Profile(plugins=ON))
    pod = restarting()
    assert snapshot.decide(pod).node is None
    snapshot.put(declaring("n", RESTART_ALL))
    assert snapshot.decide(pod).node == "n"


def test_hints_heed_what_nodes_declare() -> None:
    old, new = declaring("n"), declaring("n", RESTART_ALL)
    snapshot = Snapshot([new], profile=Profile(plugins=ON))
    assert may_unblock(snapshot, restarting(), [NAME], ClusterEvent.of(old, new))
    assert may_unblock(snapshot, restarting(), [NAME], ClusterEvent.of(None, new))
    assert not may_unblock(snapshot, restarting(), [NAME], ClusterEvent.of(new, new))
    assert not may_unblock(snapshot, restarting(), [NAME], ClusterEvent.of(new, None))


def test_the_refusal_is_kube_schedulers_and_told_in_detail() -> None:
    snapshot = Snapshot([declaring("n")], profile=Profile(plugins=ON))
    found = explain(snapshot, restarting())
    refusal = found.nodes[0].refusal
    assert refusal is not None
    assert (refusal.code, refusal.plugin) == ("UnschedulableAndUnresolvable", NAME)
    assert refusal.reasons == (REASON,)
    assert found.nodes[0].details == (f"it does not declare feature {RESTART_ALL}",)


def test_a_configuration_may_enable_it() -> None:
    chosen = choose(Plugins(multi_point=PluginChoice(enabled=[Plugin(name=NAME)])), "plugins")
    assert chosen.filters == FILTERS | {NAME}
    assert choose(None, "plugins").filters == FILTERS


def test_objects_are_read_as_the_api_writes_them() -> None:
    node = decode_object(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"},
         "status": {"allocatable": {"pods": "9"}, "declaredFeatures": [RESTART_ALL]}}
    )  # fmt: skip
    pod = decode_object(
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "a"},
         "spec": {"containers": [{"name": "c", "image": "i", "restartPolicyRules": [
             {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}]}]}}
    )  # fmt: skip
    assert isinstance(node, Node)
    assert isinstance(pod, Pod)
    assert node_for(pod, node) == "n"
    assert node_for(pod, declaring("old")) is None
