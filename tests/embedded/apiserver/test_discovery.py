"""Discovery, old and aggregated."""

from __future__ import annotations

import json
from typing import Any

from bayplan.embedded.apiserver.kinds.builtin import BUILTIN
from tests.embedded.apiserver.http_client import Http

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
