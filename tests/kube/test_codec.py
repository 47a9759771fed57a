"""Objects are decoded as the API server reads them, and errors name the place."""

from __future__ import annotations

import json

import pytest

from bayplan.base.values import JsonObject
from bayplan.kube.codec import KINDS, ObjectError, decode_object, encode, find_kind
from bayplan.kube.nodes import Node
from bayplan.kube.pods import Pod
from tests.builders import (
    Builder,
    expression,
    make_csinode,
    make_namespace,
    make_node,
    make_pdb,
    make_pod,
    make_pv,
    make_pvc,
    make_storage_class,
    node_term,
)

POD: JsonObject = {"kind": "Pod", "metadata": {"name": "p"}}


def pod_with(**spec: object) -> bytes:
    return json.dumps({**POD, "spec": spec}).encode()


def refused(data: bytes | JsonObject) -> ObjectError:
    with pytest.raises(ObjectError) as error:
        decode_object(data)
    return error.value


@pytest.mark.parametrize(
    "builder",
    [
        make_pod("p").cpu("1").claim("c").toleration("k").spread("zone").anti_affinity("host"),
        make_pod("p").node_affinity(node_term("a", "Gt", "1")).ephemeral("v", "fast").gate("a/b"),
        make_node("n").taint("k", "v").zone("z").image("a", "b", size=5),
        make_pv("pv").csi("d", "h").zone("z").bound_to("c"),
        make_pvc("c").storage_class("fast").volume("pv"),
        make_storage_class("fast", "d").waits().topology("zone", "a"),
        make_csinode("n").driver("d", 8, "zone").driver("e"),
        make_pdb("b", expression("app", "In", "a")).allows(1),
        make_namespace("ns").labels(team="a"),
    ],
    ids=lambda builder: type(builder.obj()).__name__,
)
def test_what_is_encoded_decodes_to_the_same(builder: Builder[Pod]) -> None:
    built = builder.obj()
    decoded = decode_object(encode(built))
    assert decode_object(encode(decoded)) == decoded
    assert decode_object(json.loads(encode(built))) == decoded
    assert encode(decoded) == encode(built)


def test_encoding_leaves_the_object_alone() -> None:
    pod = Pod()
    assert json.loads(encode(pod))["kind"] == "Pod"
    assert json.loads(encode(pod))["apiVersion"] == "v1"
    assert pod.kind == ""


def test_null_is_as_good_as_absent_at_any_depth() -> None:
    nulls = pod_with(
        tolerations=None,
        nodeSelector=None,
        containers=[{"name": "c", "resources": None, "ports": None}],
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": None}},
    )
    absent = pod_with(containers=[{"name": "c"}], affinity={"podAffinity": {}})
    assert decode_object(nulls) == decode_object(absent)


def test_unknown_fields_are_dropped() -> None:
    decoded = decode_object(pod_with(dnsPolicy="Default", containers=[{"name": "c", "env": []}]))
    assert decoded == decode_object(pod_with(containers=[{"name": "c"}]))


def test_of_a_repeated_key_the_last_counts_as_in_kubernetes() -> None:
    decoded = decode_object(b'{"kind":"Pod","metadata":{"name":"a","name":"b"}}')
    assert decoded.name == "b"


def test_a_namespaced_object_is_in_a_namespace_and_others_are_not() -> None:
    assert decode_object(POD).key == "default/p"
    node: JsonObject = {"kind": "Node", "metadata": {"name": "n", "namespace": "x"}}
    assert decode_object(node).key == "n"


def test_a_node_can_give_what_it_has_unless_it_says_otherwise() -> None:
    node = decode_object({"kind": "Node", "status": {"capacity": {"cpu": "4"}}})
    assert isinstance(node, Node)
    assert node.status.allocatable == {"cpu": "4"}


def test_on_the_hosts_network_ports_are_the_hosts() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 82}]
    pod = decode_object(pod_with(hostNetwork=True, containers=[{"ports": ports}]))
    assert isinstance(pod, Pod)
    assert [port.host_port for port in pod.spec.containers[0].ports] == [80, 82]


@pytest.mark.parametrize(
    ("spec", "path", "shown"),
    [
        ({"nodeName": 5}, "spec.nodeName", "5"),
        ({"containers": [{}, {"image": [1]}]}, "spec.containers[1].image", "a list"),
        ({"containers": {"a": 1}}, "spec.containers", "a dict"),
        ({"nodeSelector": {"a": "b", "c": True}}, "spec.nodeSelector.c", "True"),
        (
            {"containers": [{"resources": {"requests": {"memory": "1", "cpu": [1]}}}]},
            "spec.containers[0].resources.requests.cpu",
            "a list",
        ),
        ({"priority": 2**40}, "spec.priority", str(2**40)),
        ({"containers": [{"ports": [{"hostPort": 70000}]}]}, "spec.containers[0].ports[0].hostPort",
         "70000"),
        ({"tolerations": [{"operator": "Near"}]}, "spec.tolerations[0].operator", "'Near'"),
        ({"containers": [None]}, "spec.containers[0]", ""),
    ],
)  # fmt: skip
def test_an_error_names_the_object_the_field_and_the_value(
    spec: dict[str, object], path: str, shown: str
) -> None:
    error = refused(pod_with(**spec))
    assert (error.identity, error.path, error.shown) == ("Pod p", path, shown)
    assert path in str(error)


@pytest.mark.parametrize(
    ("missing", "path"),
    [
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "spec.topologySpreadConstraints[0]"),
        ({"topologySpreadConstraints": [{"maxSkew": 0}]},
         "spec.topologySpreadConstraints[0].maxSkew"),
    ],
)  # fmt: skip
def test_a_missing_or_useless_field_is_an_error(missing: dict[str, object], path: str) -> None:
    assert refused(pod_with(**missing)).path == path


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "cannot be read"),
        (b"nope", "cannot be read"),
        (b'{"kind":"Pod"', "cannot be read"),
        (b'{"kind":"Pod"} {}', "cannot be read"),
        (b'{"kind":"Pod","metadata":{"name":"\xff\xfe"}}', "not UTF-8"),
        (b'{"kind":"Pod","x":' + b"[" * 100_000, "nested too deeply"),
        (b"5", "not an object"),
        (b'{"kind":"ConfigMap"}', "unknown kind"),
        (b'{"kind":["Pod"]}', "unknown kind"),
    ],
    ids=["empty", "word", "cut", "two", "not utf-8", "deep", "number", "unknown", "kind of list"],
)
def test_what_is_no_object_is_an_error(data: bytes, problem: str) -> None:
    assert problem in str(refused(data))


def test_what_is_not_utf8_is_an_error_that_names_the_object() -> None:
    data = b'{"kind":"Pod","metadata":{"name":"p"},"spec":{"nodeName":"\xff"}}'
    assert str(refused(data)) == "Pod p: not UTF-8"


def test_a_huge_value_is_shown_short() -> None:
    error = refused(json.dumps({**POD, "spec": "x" * 10_000_000}).encode())
    assert len(str(error)) < 300


def test_deep_plain_values_are_refused() -> None:
    deep: JsonObject = {}
    for _ in range(100_000):
        deep = {"x": deep}
    assert "nested too deeply" in str(refused({**POD, "spec": deep, "status": {"phase": 1}}))


@pytest.mark.parametrize(
    ("kind", "api_version", "known"),
    [
        ("Service", "v1", True),
        ("Service", "", True),
        ("Service", "serving.knative.dev/v1", False),
        ("CSIStorageCapacity", "storage.k8s.io/v1beta1", True),
        ("ReplicaSet", "extensions/v1beta1", True),
        ("ConfigMap", "v1", False),
        ("", "", False),
    ],
)
def test_the_group_says_whose_kind_it_is(kind: str, api_version: str, known: bool) -> None:
    assert (find_kind(kind, api_version) is not None) is known


def test_every_kind_is_found_by_its_own_version() -> None:
    assert all(find_kind(kind.name, kind.api_version) is kind for kind in KINDS.values())
