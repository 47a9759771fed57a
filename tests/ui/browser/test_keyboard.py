"""Everything without a mouse."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browser.conftest import Opened

pytestmark = pytest.mark.whole


def test_a_walk_through_the_page_with_keys_alone(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    press = window.page.keyboard.press
    live = window.page.locator("div.sr[role=status]")

    press("2")
    table = window.page.get_by_role("table", name="Nodes")
    expect(table).to_be_visible()
    window.page.locator("main").focus()
    while window.reads("document.activeElement.tagName") != "TR":
        press("Tab")
    press("ArrowDown")
    press("Enter")
    expect(window.details).to_contain_text("old-c1")
    press("Escape")
    expect(window.details).to_have_count(0)

    press("1")
    window.drawn()
    window.page.locator("canvas").focus()
    press("ArrowRight")
    first = window.reads("bayplan.app.route.value.selection.id")
    expect(live).to_contain_text(first)
    press("ArrowRight")
    assert window.reads("bayplan.app.route.value.selection.id") != first
    scale = window.reads("bayplan.board.camera.scale")
    press("+")
    assert window.reads("bayplan.board.camera.scale") > scale
    press("0")
    press("Enter")
    assert window.reads("document.activeElement.className") == "details"

    press("Escape")
    press("/")
    window.page.keyboard.type("payments")
    expect(window.page.get_by_role("option").first).to_be_visible()
    press("Enter")
    expect(window.details).to_contain_text("shop/payments-0")
    press("Escape")
    expect(window.page.get_by_role("combobox")).to_have_value("")


def test_pending_pods_are_walked_and_opened_with_keys(shop: str, opened: Opened) -> None:
    window = opened(shop + "#/pending")
    classes = window.page.locator("a.pod-class")
    classes.first.focus()
    window.page.keyboard.press("Enter")
    expect(window.page.get_by_role("region", name="Explanation")).to_be_visible()
    window.page.keyboard.press("e")
    assert window.reads("document.activeElement.className") == "details"


def test_the_keys_are_told(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    window.page.keyboard.press("?")
    help_ = window.page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_).to_be_visible()
    expect(help_).to_contain_text("Search")
    window.page.keyboard.press("Escape")
    expect(help_).to_be_hidden()


def test_measure_colours_and_theme_have_keys(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    window.page.keyboard.press("m")
    window.page.wait_for_url(lambda url: "by=memory" in url)
    window.page.keyboard.press("c")
    window.page.wait_for_url(lambda url: "colour=namespace" in url)
    window.page.keyboard.press("t")
    expect(window.page.locator("html")).to_have_attribute("data-theme", "dark")
