"""Events of both groups: what is refused, kept and shown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.embedded.apiserver.http_client import Http
from tests.embedded.apiserver.refusals import (
    NOTHING,
    with_changes,
)

EVENT: dict[str, Any] = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    "reason": "R",
    "message": "m",
    "type": "Normal",
}
NEW_EVENT: dict[str, Any] = {
    "metadata": {"name": "e"},
    "regarding": {"kind": "Pod", "name": "p", "namespace": "default"},
    "eventTime": "2021-03-04T05:06:07.000000Z",
    "reportingController": "x.io/c",
    "reportingInstance": "i",
    "action": "A",
    "reason": "R",
    "note": "n",
    "type": "Normal",
}
CORE_EVENTS = "/api/v1/namespaces/default/events"
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


def causes_of(body: Any) -> list[str]:
    return sorted({one["field"] for one in body["details"]["causes"]})


@pytest.mark.parametrize(
    ("path", "event", "changes", "fields"),
    [
        (CORE_EVENTS, EVENT, {"involvedObject.namespace": "other"}, ["involvedObject.namespace"]),
        (
            CORE_EVENTS,
            EVENT,
            {"eventTime": "2021-03-04T05:06:07.000000Z"},
            ["action", "reportingComponent", "reportingInstance"],
        ),
        (EVENTS, NEW_EVENT, {"eventTime": NOTHING}, ["eventTime"]),
        (EVENTS, NEW_EVENT, {"type": "Odd"}, ["type"]),
        (EVENTS, NEW_EVENT, {"reportingController": "a/b/c"}, ["reportingController"]),
        (EVENTS, NEW_EVENT, {"series": {"count": 1}}, ["series.count", "series.lastObservedTime"]),
        (EVENTS, NEW_EVENT, {"note": "n" * 1025, "action": "a" * 129}, ["action", "message"]),
        (
            EVENTS,
            NEW_EVENT,
            {"deprecatedCount": 1, "deprecatedSource": {"component": "c"}},
            ["count", "source"],
        ),
        (EVENTS, NEW_EVENT, {"metadata.name": "a%b"}, ["metadata.name"]),
    ],
)
async def test_events_are_held_to_the_rules_of_the_group_they_come_by(
    http: Http, path: str, event: dict[str, Any], changes: dict[str, Any], fields: list[str]
) -> None:
    refused = await http.post(path, with_changes(event, changes))
    assert refused.code == 422
    assert causes_of(refused.body) == fields
    assert refused.body["message"].startswith('Event "')


async def test_an_event_of_the_newer_group_may_only_happen_again(http: Http) -> None:
    await http.post(EVENTS, NEW_EVENT)
    refused = await http.patch(f"{EVENTS}/e", {"note": "other", "type": "Warning"})
    assert causes_of(refused.body) == ["message", "type"]
    timeless = await http.patch(f"{EVENTS}/e", {"eventTime": None})
    assert "eventTime: Invalid value: null: field is immutable" in timeless.body["message"]
    again = {"series": {"count": 2, "lastObservedTime": "2021-03-04T05:06:08.000000Z"}}
    assert (await http.patch(f"{EVENTS}/e", again)).code == 200
    assert (await http.patch(f"{CORE_EVENTS}/e", {"message": "other"})).code == 200


async def test_both_groups_show_an_event_in_their_own_shape(http: Http) -> None:
    made = (await http.post(CORE_EVENTS, EVENT)).body
    assert (made["reportingComponent"], made["source"], made["firstTimestamp"]) == ("", {}, None)
    shown = (await http.get(f"{EVENTS}/e")).body
    assert "reportingController" not in shown
    assert (shown["note"], shown["deprecatedSource"]) == ("m", {})
    await http.post(EVENTS, with_changes(NEW_EVENT, {"metadata.name": "f"}))
    found = (await http.get(f"{CORE_EVENTS}?fieldSelector=source%3Dx.io/c")).body["items"]
    assert [one["metadata"]["name"] for one in found] == ["f"]


async def test_a_moment_to_the_microsecond_says_microseconds(http: Http) -> None:
    for rough in (
        "2021-03-04T05:06:07Z",
        "2021-03-04T05:06:07.5Z",
        "2021-03-04T05:06:07.123456789Z",
    ):
        refused = await http.post(EVENTS, with_changes(NEW_EVENT, {"eventTime": rough}))
        assert (refused.code, "2006-01-02T15:04:05.000000Z07:00" in refused.body["message"]) == (
            400,
            True,
        )


async def test_what_was_noticed_is_told_with_a_refusal_too(http: Http) -> None:
    refused = await http.post("/api/v1/nodes", {"metadata": {"name": "No"}, "spec": {"bogus": 1}})
    assert refused.code == 422
    assert 'unknown field \\"spec.bogus\\"' in refused.headers["Warning"]


async def test_the_table_of_events_tells_who_saw_what_how_often(http: Http) -> None:
    again = {"series": {"count": 3, "lastObservedTime": "2021-03-04T05:06:08.000000Z"}}
    await http.post(EVENTS, {**NEW_EVENT, **again})
    table = (
        await http.get(CORE_EVENTS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    ).body
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert (cells["Source"], cells["Count"], cells["Object"]) == ("x.io/c, i", 3, "pod/p")
