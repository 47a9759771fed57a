"""The pods that DaemonSets make, and the nodes that get one."""

from __future__ import annotations

import pytest

from bayplan.kube.codec import decode_object, encode
from bayplan.kube.daemonsets import daemon_pod, should_run_on
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from bayplan.kube.selectors import compile_node_selector
from bayplan.kube.workloads import DaemonSet
from tests.builders import make_daemon_set, make_node, make_pod, node_term

pytestmark = pytest.mark.whole


NOT_READY = "node.kubernetes.io/not-ready"
NETWORK = "node.kubernetes.io/network-unavailable"


def on_host_network() -> Pod:
    pod = make_pod().obj()
    pod.spec.host_network = True
    return pod


@pytest.mark.parametrize(
    ("pod", "node", "runs"),
    [
        (make_pod().obj(), make_node().obj(), True),
        (make_pod().obj(), make_node().unschedulable().obj(), True),
        (make_pod().obj(), make_node().taint("node.kubernetes.io/unschedulable").obj(), True),
        (make_pod().obj(), make_node().taint("dedicated", "db").obj(), False),
        (make_pod().toleration("dedicated", "db").obj(),
         make_node().taint("dedicated", "db").obj(), True),
        (make_pod().obj(), make_node().taint("soft", effect="PreferNoSchedule").obj(), True),
        (make_pod().obj(), make_node().taint(NOT_READY, effect="NoExecute").obj(), True),
        (make_pod().obj(), make_node().taint(NOT_READY).obj(), False),
        (make_pod().obj(), make_node().taint(NETWORK).obj(), False),
        (on_host_network(), make_node().taint(NETWORK).obj(), True),
        (make_pod().node_selector(disk="ssd").obj(), make_node().obj(), False),
        (make_pod().node_selector(disk="ssd").obj(), make_node().labels(disk="ssd").obj(), True),
        (make_pod().node_affinity(node_term("disk", "Exists")).obj(), make_node().obj(), False),
        (make_pod().node("elsewhere").obj(), make_node("here").obj(), False),
    ],
)  # fmt: skip
def test_a_node_gets_a_pod_by_name_labels_affinity_and_taints(
    pod: Pod, node: Node, runs: bool
) -> None:
    assert should_run_on(make_daemon_set("agent", pod).obj(), node) is runs


def test_the_pod_is_the_templates_tied_to_the_node_by_its_name() -> None:
    template = make_pod().labels(app="agent").cpu("100m").node_affinity(node_term("a", "Exists"))
    daemons = make_daemon_set("agent", template.obj(), "system").obj()
    pod = daemon_pod(daemons, "n1")
    assert pod.key == "system/agent-n1"
    assert pod.metadata.labels == {"app": "agent"}
    owner = pod.metadata.controller
    assert owner is not None
    assert (owner.kind, owner.name, owner.uid) == ("DaemonSet", "agent", daemons.metadata.uid)
    assert pod.spec.containers == daemons.spec.template.spec.containers
    assert pod.spec.node_name == ""
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None
    # The template's own required affinity has had its say in which nodes get a pod.
    only = compile_node_selector(pod.spec.affinity.node_affinity.required)
    assert [only.matches(make_node(name).obj()) for name in ("n1", "n2")] == [True, False]


def test_the_template_stays_as_it_is() -> None:
    daemons = make_daemon_set("agent", make_pod().affinity("zone").obj()).obj()
    before = encode(daemons)
    daemon_pod(daemons, "n1").metadata.labels["x"] = "y"
    assert encode(daemons) == before


def test_a_toleration_for_a_while_becomes_one_for_good() -> None:
    template = make_pod().toleration(NOT_READY, operator="Exists", effect="NoExecute").obj()
    template.spec.tolerations[0].toleration_seconds = 300
    held = daemon_pod(make_daemon_set("agent", template).obj(), "n1").spec.tolerations
    assert [one.toleration_seconds for one in held if one.key == NOT_READY] == [None]


def test_a_daemon_set_is_read_from_its_wire_form() -> None:
    daemons = make_daemon_set("agent", on_host_network()).obj()
    daemons.spec.template.spec.containers = make_pod().host_port(80).obj().spec.containers
    daemons.spec.template.spec.containers[0].ports[0].host_port = 0
    read = decode_object(encode(daemons))
    assert isinstance(read, DaemonSet)
    # On the host's network a container's port is the host's, in a template as in a pod.
    assert read.spec.template.spec.containers[0].ports[0].host_port == 80
