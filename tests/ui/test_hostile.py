"""Texts of strangers arrive as data, bounded, whatever they hold."""

from __future__ import annotations

import json

from bayplan.kube.events import Event
from bayplan.kube.meta import ObjectMeta, ObjectReference
from tests.builders import make_node, make_pod
from tests.ui.pages import browsing, page_of, rows

SCRIPT = "<script>alert(1)</script>"


def event(name: str, note: str) -> Event:
    return Event(
        metadata=ObjectMeta(name=name, namespace="default"),
        regarding=ObjectReference(kind="Pod", namespace="default", name=SCRIPT),
        reason=SCRIPT,
        note=note,
        type="Warning",
    )


async def test_a_pod_named_like_a_script_is_a_name() -> None:
    pod = make_pod(SCRIPT).labels(app=SCRIPT).owner(SCRIPT, SCRIPT).obj()
    async with (
        browsing(page_of(make_node("n1").obj(), pod)) as browser,
        browser.session.get("api/state") as answer,
    ):
        assert answer.content_type == "application/json"
        state = json.loads(await answer.read())
    assert any(row[0] == f"default/{SCRIPT}" for row in state["tables"]["pods"]["rows"])


def test_a_message_of_ten_megabytes_is_cut() -> None:
    page = page_of(event("e", "x" * 10_000_000))
    (row,) = rows(page, "events").values()
    assert len(row["message"]) <= 1000


def test_control_characters_and_broken_text_stay_within_a_line() -> None:
    page = page_of(event("e", "a\x00b\r\n\u2028c\ud800"))
    (row,) = rows(page, "events").values()
    assert "\n" not in row["message"]
    assert "\r" not in row["message"]
    row["message"].encode()


def test_huge_annotations_never_reach_the_page() -> None:
    pod = make_pod("p").obj()
    pod.metadata.annotations = {"example.com/blob": "x" * 10_000_000}
    page = page_of(pod)
    assert len(json.dumps(page.picture.tables.rows())) < 10_000


def test_names_that_are_cut_stay_apart() -> None:
    long = "x" * 5000
    page = page_of(make_pod(f"{long}a").obj(), make_pod(f"{long}b").obj())
    found = rows(page, "pods")
    assert len(found) == 2
    assert all(len(name) < 600 for name in found)


def test_only_the_latest_events_are_shown() -> None:
    page = page_of(*(event(f"e{number:05}", "n") for number in range(3000)))
    assert len(rows(page, "events")) == 500
