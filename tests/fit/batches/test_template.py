"""New nodes of a template: which labels hold their names."""

from __future__ import annotations

from bayplan.fit import Snapshot
from bayplan.fit.batches import NodeTemplate
from bayplan.kube.labels import HOSTNAME
from bayplan.kube.nodes import Node
from bayplan.kube.storage import CSINode
from tests.builders import make_csinode, make_node

LOCAL = "topology.local.example.com/node"


def new_node(labels: dict[str, str], csinode: CSINode | None = None) -> Node:
    node = make_node("t3").labels({HOSTNAME: "t3", **labels}).obj()
    snapshot = Snapshot([node] if csinode is None else [node, csinode])
    (made,) = (
        one
        for one in NodeTemplate.from_node(snapshot, "t3").objects("new")
        if isinstance(one, Node)
    )
    return made


def test_only_the_hostname_is_the_new_nodes_own() -> None:
    made = new_node({"pool": "t3", "node.kubernetes.io/instance-type": "t3"})
    assert made.metadata.labels[HOSTNAME] == "new"
    assert made.metadata.labels["pool"] == "t3"
    assert made.metadata.labels["node.kubernetes.io/instance-type"] == "t3"


def test_a_topology_key_of_a_driver_that_holds_the_nodes_name_is_the_new_nodes_own() -> None:
    csinode = make_csinode("t3").driver("local.example.com", 8, LOCAL).obj()
    assert new_node({LOCAL: "t3"}, csinode).metadata.labels[LOCAL] == "new"
    assert new_node({LOCAL: "rack-1"}, csinode).metadata.labels[LOCAL] == "rack-1"
