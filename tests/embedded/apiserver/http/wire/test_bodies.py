"""Bodies that cannot be what they should be, and what the server says of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.apiserver.http_client import JSON_PATCH, MERGE, STRATEGIC, Http

CMS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
CM = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (
            {"spec": {"containers": {"x": 1}}},
            (
                "cannot unmarshal object into Go struct field PodSpec.spec.containers of type "
                "[]v1.Container"
            ),
        ),
        (
            {"spec": {"restartPolicy": 5}},
            (
                "cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type "
                "v1.RestartPolicy"
            ),
        ),
        (
            {"spec": {"terminationGracePeriodSeconds": 1.5}},
            (
                "cannot unmarshal number 1.5 into Go struct field "
                "PodSpec.spec.terminationGracePeriodSeconds of type int64"
            ),
        ),
        (
            {"spec": {"volumes": [{"name": "v", "hostPath": []}]}},
            (
                "cannot unmarshal array into Go struct field "
                "Volume.spec.volumes.VolumeSource.hostPath of type v1.HostPathVolumeSource"
            ),
        ),
    ],
)
async def test_a_value_of_a_wrong_type_is_named_by_its_place(
    http: Http, change: dict[str, Any], problem: str
) -> None:
    reply = await http.post(PODS, {"metadata": {"name": "a"}, **change})
    assert reply.code == 400
    expected = f'Pod in version "v1" cannot be handled as a Pod: json: {problem}'
    assert reply.body["message"] == expected


async def test_a_value_that_reads_itself_comes_before_others(http: Http) -> None:
    containers = [{"name": 5, "resources": {"requests": {"cpu": "x"}}}]
    reply = await http.post(PODS, {"metadata": {"name": "a"}, "spec": {"containers": containers}})
    assert "quantities must match the regular expression" in reply.body["message"]


async def test_unknown_and_repeated_fields_are_told_in_their_order(http: Http) -> None:
    body = b'{"metadata":{"name":"a","zz":1},"data":{"a":"b","a":"c"},"foo":1}'
    told = ['unknown field "metadata.zz"', 'duplicate field "data.a"', 'unknown field "foo"']
    strict = await http("POST", CMS + "?fieldValidation=Strict", body)
    assert strict.body["message"].endswith("strict decoding error: " + ", ".join(told))
    warned = await http("POST", CMS, body)
    assert (warned.code, warned.body["data"]) == (201, {"a": "c"})
    assert "Warning" in warned.headers


async def test_what_is_not_said_of_the_kind_is_what_is_wanted(http: Http) -> None:
    made = await http.post(CMS, {"apiVersion": "v1", "metadata": {"name": "b"}})
    assert made.code == 201
    other = await http.post(CMS, {**CM, "kind": "Pod"})
    assert other.body["message"] == (
        'Pod in version "v1" cannot be handled as a ConfigMap: '
        "converting (v1.Pod) to (core.ConfigMap): unknown conversion"
    )
    unknown = await http.post(CMS, {**CM, "kind": "Foo"})
    assert 'no kind "Foo" is registered for version "v1"' in unknown.body["message"]


async def test_a_patch_makes_no_other_kind(http: Http) -> None:
    await http.post(CMS, CM)
    for patch, kind in (({"kind": "Foo"}, MERGE), ({"apiVersion": "v9"}, MERGE)):
        reply = await http.patch(f"{CMS}/a", patch, kind)
        assert (reply.code, reply.body["reason"]) == (422, "Invalid")
        assert reply.body["details"]["causes"][0]["field"] == "patch"


async def test_patches_are_refused_by_what_they_leave(http: Http) -> None:
    await http.post(CMS, CM)
    merged = await http.patch(f"{CMS}/a", {"data": {"x": 5}})
    assert merged.body["message"].endswith(
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string"
    )
    strategic = await http.patch(f"{CMS}/a", {"data": "x"}, STRATEGIC)
    assert strategic.body["message"].endswith('"map[data:x]": cannot restore map from string')
    nameless = await http.patch(f"{CMS}/a", {"metadata": None})
    assert nameless.code == 400
    assert "was undeterminable: name must be provided" in nameless.body["message"]


async def test_json_patches_are_as_lenient_as_kubernetes(http: Http) -> None:
    await http.post(CMS, {**CM, "metadata": {"name": "a", "finalizers": ["e.com/a", "e.com/b"]}})
    operations = [
        {"op": "replace", "path": "/data/new", "value": "y"},
        {"op": "remove", "path": "/metadata/finalizers/-1"},
    ]
    reply = await http.patch(f"{CMS}/a", operations, JSON_PATCH)
    assert reply.body["data"] == {"x": "1", "new": "y"}
    assert reply.body["metadata"]["finalizers"] == ["e.com/a"]


async def test_halves_of_characters_are_replaced(http: Http) -> None:
    reply = await http("POST", CMS, b'{"metadata":{"name":"a"},"data":{"a":"\\ud800"}}')
    assert (reply.code, reply.body["data"]) == (201, {"a": "\ufffd"})


async def test_a_patch_that_is_too_deep_is_distinct_what_it_would_leave(http: Http) -> None:
    await http.post(CMS, CM)
    deep = b'{"data":' + b'{"a":' * 300 + b"1" + b"}" * 301
    reply = await http("PATCH", f"{CMS}/a", deep, {"Content-Type": MERGE})
    assert (reply.code, reply.body["details"]["causes"][0]["field"]) == (422, "patch")
