"""Nodes and pods as bytes: what was written is read, and nothing that comes in breaks anything."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bayplan.kube.meta import KubeObject
from bayplan.kube.requests import pod_requests
from bayplan.nodegroups import InvalidRequestError
from bayplan.nodegroups.externalgrpc.convert import node_bytes, pod_bytes, read_node, read_pod
from tests.builders import make_node, make_pod


def test_a_node_is_read_as_it_was_written() -> None:
    node = (
        make_node("n")
        .capacity({"cpu": 4, "memory": "16Gi", "pods": "110", "example.com/x": 0.5})
        .taint("dedicated", "shop")
        .label("limits", "a label may have any name")
        .unschedulable()
        .ready()
        .obj()
    )
    found = read_node(node_bytes(node))
    assert found.status.allocatable == {
        "cpu": "4", "memory": "16Gi", "pods": "110", "example.com/x": "0.5",
    }  # fmt: skip
    assert found.metadata.labels == node.metadata.labels
    assert found.spec == node.spec
    assert node_bytes(found) == node_bytes(node)


def test_a_pod_asks_for_as_much_after_the_wire_as_before() -> None:
    pod = make_pod("p").cpu("250m").memory("1Gi").request("example.com/x", 2).obj()
    assert pod_requests(read_pod(pod_bytes(pod))) == pod_requests(pod)


def test_the_bytes_are_those_of_kubernetes_own_protobuf() -> None:
    # ObjectMeta{name=1} in Node{metadata=1}; NodeSpec{providerID=3} in Node{spec=2}.
    node = read_node(b"\x0a\x03\x0a\x01n\x12\x07\x1a\x05sim:x")
    assert (node.name, node.spec.provider_id) == ("n", "sim:x")


@pytest.mark.parametrize("read", [read_node, read_pod])
@given(data=st.binary(max_size=64))
@example(data=b"\x0a\x03\x0a\x01\xff")
@example(data=b"\x12\x0a\x2a\x08\x0a\x01k\x1a\x03Bad")
def test_whatever_comes_in_is_an_object_or_an_invalid_request(
    read: Callable[[bytes], KubeObject], data: bytes
) -> None:
    with contextlib.suppress(InvalidRequestError):
        assert read(data).kind in {"Node", "Pod"}
