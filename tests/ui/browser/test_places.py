"""Every view has an address, and the back button goes back."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browser.conftest import Opened

pytestmark = pytest.mark.whole


def test_an_address_brings_back_view_selection_measure_and_look(shop: str, opened: Opened) -> None:
    window = opened(shop + "#/bays?sel=node/worker-a1&by=memory&colour=owner&look=3.00,2.00,90.00")
    window.drawn()
    expect(window.details.get_by_role("heading", name="worker-a1")).to_be_visible()
    expect(window.page.get_by_role("radio", name="memory")).to_be_checked()
    expect(window.page.get_by_role("radio", name="owner")).to_be_checked()
    assert window.reads("bayplan.board.camera.scale") == pytest.approx(0.9)


def test_a_search_is_part_of_the_address(shop: str, opened: Opened) -> None:
    window = opened(shop + "#/nodes?q=zone:eu-1b")
    rows = window.page.get_by_role("table", name="Nodes").locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(window.page.get_by_role("combobox")).to_have_value("zone:eu-1b")


def test_back_and_forth(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    views = window.page.get_by_role("navigation", name="Views")
    views.get_by_role("link", name="Nodes").click()
    views.get_by_role("link", name="Pending").click()
    expect(window.page.locator("section.pending-pods")).to_be_visible()
    window.page.go_back()
    expect(window.page.get_by_role("table", name="Nodes")).to_be_visible()
    window.page.go_back()
    window.drawn()
    window.page.go_forward()
    expect(views.get_by_role("link", name="Nodes")).to_have_attribute("aria-current", "page")


def test_a_selection_that_is_gone_is_said(shop: str, opened: Opened) -> None:
    window = opened(shop + "#/pending?sel=pod/shop/nobody")
    expect(window.details).to_contain_text(
        "pod shop/nobody does not exist at this time: it was deleted, or not created yet."
    )
