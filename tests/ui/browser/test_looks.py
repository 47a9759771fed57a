"""Narrow and wide windows, dark and light, and what readers without eyes or colours need."""

from __future__ import annotations

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.ui.browser.conftest import Opened
from tests.ui.browser.measures import CONTRASTS, NAMELESS, OUT_OF_ORDER, REPEATED_IDS

pytestmark = pytest.mark.whole


VIEWS = ("bays", "nodes", "pending", "queues", "plan", "events")
SCROLLED = "[document.documentElement.scrollWidth, document.documentElement.scrollHeight]"
SELECTED = "sel=pod/shop/ledger-16"
PHONE = ViewportSize(width=360, height=740)
WALL = ViewportSize(width=2560, height=1300)


@pytest.mark.parametrize("size", [PHONE, WALL], ids=["phone", "wall"])
def test_every_view_fits_its_window(shop: str, opened: Opened, size: ViewportSize) -> None:
    window = opened(shop, viewport=size)
    for view in VIEWS:
        window.turn(f"#/{view}?sel=node/worker-a1")
        expect(window.details).to_be_visible()
        width, height = window.reads(SCROLLED)
        assert width <= size["width"], view
        assert height <= size["height"], view
        shown = window.page.locator("main").bounding_box()
        assert shown is not None
        assert shown["height"] > 150, view


@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_all_text_can_be_read(shop: str, opened: Opened, scheme: str) -> None:
    window = opened(f"{shop}#/plan?{SELECTED}", color_scheme=scheme)
    expect(window.page.locator("article.plan").first).to_be_visible()
    explanation = window.page.get_by_role("region", name="Explanation")
    for view in VIEWS:
        window.turn(f"#/{view}?{SELECTED}")
        expect(explanation).to_have_attribute("aria-busy", "false")
        assert window.reads("document.documentElement.dataset.theme") == scheme
        assert window.reads(CONTRASTS) == [], view


def test_every_control_has_a_name_and_its_place_in_the_order(shop: str, opened: Opened) -> None:
    window = opened(shop)
    for view in VIEWS:
        window.turn(f"#/{view}?{SELECTED}")
        expect(window.details).to_be_visible()
        for wrong in (NAMELESS, REPEATED_IDS, OUT_OF_ORDER):
            assert window.reads(wrong) == [], view
        expect(window.page.get_by_role("main")).to_have_count(1)
    assert window.reads("document.documentElement.lang") == "en"


def test_the_choice_of_colours_is_kept(shop: str, opened: Opened) -> None:
    window = opened(shop, color_scheme="light")
    window.page.get_by_role("button", name="Dark colours").click()
    window.page.reload()
    assert window.reads("document.documentElement.dataset.theme") == "dark"


def test_a_finger_drags_and_two_zoom(shop: str, opened: Opened) -> None:
    window = opened(shop, viewport=PHONE, has_touch=True)
    window.drawn()
    session = window.page.context.new_cdp_session(window.page)
    scale = window.reads("bayplan.board.camera.scale")

    def touch(kind: str, *points: tuple[float, float]) -> None:
        at = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(points)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": at})

    touch("touchStart", (150, 500), (210, 500))
    touch("touchMove", (110, 500), (250, 500))
    touch("touchMove", (70, 500), (290, 500))
    touch("touchEnd")
    assert window.reads("bayplan.board.camera.scale") > scale * 1.5
    x = window.reads("bayplan.board.camera.x")
    touch("touchStart", (100, 500))
    touch("touchMove", (160, 500))
    touch("touchMove", (200, 500))
    touch("touchEnd")
    assert window.reads("bayplan.board.camera.x") < x
