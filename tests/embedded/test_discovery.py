"""What is served: discovery, OpenAPI, tables, partial objects, health and metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from bayplan.embedded.apiserver.tables.columns import duration
from tests.embedded.http_client import Http
from tests.embedded.test_objects import CMS, config_map

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def test_old_and_aggregated_discovery_name_the_same_resources(http: Http) -> None:
    old: set[tuple[str, str]] = set()
    for group in [None, *(await http.get("/apis")).body["groups"]]:
        path = f"/apis/{group['preferredVersion']['groupVersion']}" if group else "/api/v1"
        listed = (await http.get(path)).body
        name = group["name"] if group else ""
        old |= {(name, one["name"]) for one in listed["resources"] if "/" not in one["name"]}
    new: set[tuple[str, str]] = set()
    for path in ("/api", "/apis"):
        reply = await http.get(path, Accept=AGGREGATED)
        assert reply.headers["Content-Type"] == AGGREGATED
        for group in _json(reply.body)["items"]:
            for version in group["versions"]:
                name = group["metadata"].get("name", "")
                new |= {(name, one["resource"]) for one in version["resources"]}
    assert old == new == {(kind.group, kind.plural) for kind in BUILTIN}


def _json(body: Any) -> Any:
    return body if isinstance(body, dict) else json.loads(body)


async def test_every_group_has_an_openapi_document(http: Http) -> None:
    index = (await http.get("/openapi/v3")).body["paths"]
    for path, entry in index.items():
        document = (await http.get(entry["serverRelativeURL"])).body
        assert document["openapi"] == "3.0.0", path
        schemas = document["components"]["schemas"]
        assert not _dangling(document, schemas), path
    everything = (await http.get("/openapi/v2")).body
    assert "io.k8s.api.core.v1.PodSpec" in everything["definitions"]
    assert (await http.get("/openapi/v3/apis/nope/v1")).code == 404


def _dangling(value: Any, schemas: dict[str, Any]) -> list[str]:
    """References that lead nowhere."""
    if isinstance(value, list):
        return [found for one in value for found in _dangling(one, schemas)]
    if not isinstance(value, dict):
        return []
    reference = value.get("$ref")
    found = []
    if isinstance(reference, str) and reference.rpartition("/")[2] not in schemas:
        found.append(reference)
    return found + [inner for one in value.values() for inner in _dangling(one, schemas)]


async def test_tables_have_cells_and_metadata(http: Http) -> None:
    await http.post(CMS, config_map("a", x="1"))
    table = (await http.get(CMS, Accept=TABLE)).body
    assert table["kind"] == "Table"
    assert [one["name"] for one in table["columnDefinitions"]] == ["Name", "Data", "Age"]
    (row,) = table["rows"]
    assert row["cells"][:2] == ["a", 1]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    bare = (await http.get(f"{CMS}?includeObject=None", Accept=TABLE)).body
    assert bare["rows"][0]["object"] is None
    one = (await http.get(f"{CMS}/a", Accept=TABLE)).body
    assert one["rows"][0]["cells"][0] == "a"


async def test_every_kind_can_be_shown_as_a_table(http: Http) -> None:
    for kind in BUILTIN:
        if "list" not in kind.verbs:
            continue
        root = f"/apis/{kind.group}" if kind.group else "/api"
        table = await http.get(f"{root}/{kind.version}/{kind.plural}", Accept=TABLE)
        assert (table.code, table.body["kind"]) == (200, "Table"), kind


async def test_a_watch_can_be_of_tables(http: Http) -> None:
    await http.post(CMS, config_map("a"))
    headers = {"Accept": TABLE}
    async with http.session.get(f"{CMS}?watch=1", headers=headers) as response:
        line = await response.content.readline()
    event = _json(line)
    assert (event["type"], event["object"]["kind"]) == ("ADDED", "Table")


async def test_metadata_alone_can_be_asked_for(http: Http) -> None:
    await http.post(CMS, config_map("a", x="1"))
    one = (await http.get(f"{CMS}/a", Accept=PARTIAL)).body
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "a")
    assert "data" not in one
    accept = PARTIAL.replace("Metadata;", "MetadataList;")
    many = (await http.get(CMS, Accept=accept)).body
    assert many["kind"] == "PartialObjectMetadataList"
    assert [item["metadata"]["name"] for item in many["items"]] == ["a"]


async def test_events_are_one_thing_under_two_names(http: Http) -> None:
    event = {
        "metadata": {"name": "e"},
        "reason": "Because",
        "note": "it happened",
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
        "type": "Normal",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "example.com/c",
        "reportingInstance": "c-1",
        "action": "Happening",
    }
    await http.post("/apis/events.k8s.io/v1/namespaces/default/events", event)
    core = (await http.get("/api/v1/namespaces/default/events/e")).body
    assert (core["message"], core["involvedObject"]["name"]) == ("it happened", "p")
    query = "fieldSelector=involvedObject.name%3Dp"
    found = (await http.get(f"/api/v1/namespaces/default/events?{query}")).body["items"]
    assert len(found) == 1
    query = "fieldSelector=regarding.name%3Dp"
    found = (await http.get(f"/apis/events.k8s.io/v1/events?{query}")).body["items"]
    assert found[0]["note"] == "it happened"


async def test_health_version_and_metrics(http: Http) -> None:
    for path in ("/healthz", "/livez", "/readyz"):
        assert (await http.get(path)).body == b"ok"
    assert (await http.get("/version")).body["major"] == "1"
    await http.post(CMS, config_map("a"))
    metrics = (await http.get("/metrics")).body.decode()
    assert 'apiserver_storage_objects{resource="configmaps"} 1.0' in metrics
    assert 'resource="configmaps"' in metrics


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (40 * 3600, "40h"),
        (3 * 86400, "3d"),
        (400 * 86400, "400d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: int, shown: str) -> None:
    assert duration(seconds) == shown
