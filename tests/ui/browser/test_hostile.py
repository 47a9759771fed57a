"""Names that are code anywhere else are only names here."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Dialog, expect

from tests.ui.browser.conftest import Opened
from tests.ui.browser.page_servers import FakeBackend, PageServerThread, row
from tests.ui.browser.windows import Window

pytestmark = pytest.mark.whole


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "${alert(3)}{{constructor}}",
    "javascript:alert(4)",
    "\u202egnp.exe\u0000\u0007",
    "__proto__",
)
"""Names that no API server lets in, and that the page must not take for anything else."""
ELEMENTS = "document.querySelectorAll('main script, main img, aside img, aside script').length"


@pytest.fixture(scope="module")
def hostile() -> Iterator[str]:
    """The page of a cluster all of whose texts are hostile."""
    backend = FakeBackend()
    for name in HOSTILE:
        texts = {"title": name, "message": name, "note": name, "why": name, "reason": name}
        node = {"type": name, "zone": name, "group": name, "taints": [name], "missing": [name]}
        backend.put("nodes", [row("nodes", id=name, cpu=4000, memory=1, ready="True", **node)])
        backend.put("groups", [row("groups", id=name, source=name, **texts)])
        backend.put("rails", [row("rails", id=name, node=name, driver=name, origin=name, limit=3)])
        pod = {"cpu": 500, "owner": name, "queue": name, "phase": name}
        backend.put("pods", [row("pods", id=f"shop/{name}", node=name, state="running", **pod)])
        backend.put("pods", [row("pods", id=f"shop/{name} waits", state="waiting", **pod)])
        waits = [f"shop/{name} waits"]
        backend.put(
            "waiting", [row("waiting", id=name, pods=waits, sample=waits[0], count=1, **texts)]
        )
        backend.put("queues", [row("queues", id=name, quota={name: name}, next=name, problem=name)])
        steps = [{"what": name, "group": name, "why": name, "cost": name}]
        backend.put("plans", [row("plans", id=name, steps=steps, **texts)])
        backend.put(
            "events", [row("events", id=name, about=f"Pod shop/{name}", type=name, **texts)]
        )
    backend.explanation = json.dumps(EXPLANATION).encode()
    with PageServerThread(backend).running() as url:
        yield url


EXPLANATION = {
    "fits": False,
    "message": HOSTILE[0],
    "why": HOSTILE[1],
    "queue": {"queue": HOSTILE[0], "waitsFor": HOSTILE[1]},
    "nodes": [
        {"name": HOSTILE[0], "fits": False, "plugin": HOSTILE[0], "reasons": [HOSTILE[1]]},
    ],
    "fixes": [
        {
            "summary": HOSTILE[0],
            "steps": [{"text": HOSTILE[1], "command": HOSTILE[0], "risks": [HOSTILE[1]]}],
        }
    ],
}


@pytest.fixture
def window(hostile: str, opened: Opened) -> Window:
    """A window in which nothing may ask or tell through a dialog."""
    window = opened(hostile)
    window.page.on("dialog", _refuse)
    return window


def _refuse(dialog: Dialog) -> None:
    dialog.dismiss()
    raise AssertionError(f"the page ran what it was told: {dialog.message}")


def test_no_view_takes_a_name_for_anything_else(window: Window) -> None:
    for view in ("bays", "nodes", "pending", "queues", "plan", "events"):
        window.turn(f"#/{view}")
        expect(window.page.locator("main section").first).to_be_visible()
        assert window.reads(ELEMENTS) == 0
    window.turn("#/bays")
    window.drawn()
    window.page.mouse.move(*window.bay(HOSTILE[0]))
    expect(window.page.locator(".tip")).to_contain_text(HOSTILE[0])


def test_a_hostile_pod_is_shown_by_its_name(window: Window) -> None:
    window.turn("#/nodes")
    table = window.page.get_by_role("table", name="Nodes")
    link = table.get_by_role("link", name=HOSTILE[0]).first
    expect(link).to_have_text(HOSTILE[0])
    link.click()
    expect(window.details.get_by_role("heading", name=HOSTILE[0])).to_be_visible()
    window.details.get_by_role("link", name=f"shop/{HOSTILE[0]}").click()
    expect(window.details.get_by_role("heading", name=f"shop/{HOSTILE[0]}")).to_be_visible()
    assert window.reads(ELEMENTS) == 0


def test_its_explanation_is_text(window: Window) -> None:
    window.turn("#/pending")
    window.page.locator("a.pod-class").first.click()
    explanation = window.page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text(HOSTILE[0])
    expect(explanation.locator("code")).to_have_text(HOSTILE[0])
    assert window.reads(ELEMENTS) == 0


def test_the_search_and_the_address_only_name_things(window: Window) -> None:
    window.page.get_by_role("combobox").fill("script")
    expect(window.page.get_by_role("option").first).to_contain_text("<script>")
    window.go("#/bays?sel=node/<img src=x onerror=alert(9)>&q=<script>alert(8)</script>")
    expect(window.details).to_contain_text(
        "node <img src=x onerror=alert(9)> does not exist at this time:"
        " it was deleted, or not created yet."
    )
    assert window.reads(ELEMENTS) == 0
