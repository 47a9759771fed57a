"""Each view of the page, of a dump: what it shows, and how one gets from one thing to the next."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.ui.browser.conftest import Opened
from tests.ui.browser.page_servers import PageServerThread, row

pytestmark = pytest.mark.whole


def test_a_bay_is_opened_with_the_mouse_and_tells_its_pods_and_attach_places(
    shop: str, opened: Opened
) -> None:
    window = opened(shop)
    window.drawn()
    window.choose_bay("worker-b1")
    expect(window.details).to_contain_text("worker-b1")
    expect(window.details).to_contain_text("ebs.csi.aws.com: 4 of 4 attach slots in use")
    expect(window.details).to_contain_text("limit from: CSINode")

    window.details.get_by_role("link", name="shop/ledger-2").click()
    expect(window.details.get_by_role("heading", name="shop/ledger-2")).to_be_visible()
    window.page.go_back()
    expect(window.details.get_by_role("heading", name="worker-b1")).to_be_visible()


def test_pointing_at_a_bay_tells_of_it(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    window.page.mouse.move(*window.bay("worker-a1"))
    expect(window.page.locator(".tip")).to_contain_text("requests")
    window.page.mouse.move(2, 2)
    expect(window.page.locator(".tip")).to_have_count(0)


def test_the_wheel_zooms_dragging_pans_and_fit_comes_back(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    fitted = window.reads("bayplan.board.camera.scale")
    x, y = window.bay("worker-b1")
    window.page.mouse.move(x, y)
    window.page.mouse.wheel(0, -400)
    assert window.reads("bayplan.board.camera.scale") > fitted * 2
    assert abs(window.bay("worker-b1")[0] - x) < 4
    window.page.mouse.down()
    window.page.mouse.move(x + 100, y + 40, steps=4)
    window.page.mouse.up()
    assert window.bay("worker-b1")[0] > x + 50
    window.page.get_by_role("button", name="Fit").click()
    assert window.reads("bayplan.board.camera.scale") == fitted


def test_pods_that_wait_stand_by_cause_and_are_a_step_from_their_explanation(
    shop: str, opened: Opened
) -> None:
    window = opened(shop + "#/pending")
    volumes = window.page.locator("section.cause.volumes")
    expect(volumes).to_contain_text("StatefulSet ledger")
    volumes.get_by_role("link", name="StatefulSet ledger").click()
    explanation = window.page.get_by_role("region", name="Explanation")
    expect(explanation).to_contain_text("exceed max volume count")
    expect(explanation).to_contain_text("Nearest fixes")
    expect(explanation.locator("code").first).to_contain_text("kubectl")
    expect(explanation).to_contain_text("Other pods may be scheduled to that node too.")
    said = explanation.get_by_text("node(s) exceed max volume count", exact=False).last
    said.click()
    expect(explanation.get_by_role("link", name="worker-a1")).to_be_visible()


def test_a_command_can_be_copied(shop: str, opened: Opened) -> None:
    address = shop
    window = opened(address + "#/pending?sel=pod/shop/ledger-16")
    window.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    line = window.page.locator(".command").first
    line.get_by_role("button").click()
    expect(line.get_by_role("button")).to_have_text("Copied")
    assert window.reads("navigator.clipboard.readText()") == line.locator("code").inner_text()


def test_queues_are_a_tree_with_shares_and_who_is_next(batch: str, opened: Opened) -> None:
    window = opened(batch + "#/queues")
    nightly = window.page.locator(
        "article.queue", has=window.page.get_by_text("nightly", exact=True)
    )
    expect(nightly).to_contain_text("Next: batch/rebuild")
    expect(nightly).to_contain_text("is asked for")
    expect(window.page.locator(".tree ul ul article.queue").first).to_be_visible()
    nightly.get_by_role("link", name="nightly").click()
    expect(window.details).to_contain_text("Pending")


def test_the_plan_says_what_why_and_the_cost(shop: str, opened: Opened) -> None:
    window = opened(shop + "#/plan")
    plan = window.page.locator("article.plan").first
    expect(plan).to_be_visible()
    expect(plan.locator("ol.steps li").first).to_be_visible()


def test_events_are_told_as_they_come_the_newest_first_and_filtered(
    server: PageServerThread, opened: Opened
) -> None:
    about = {"about": "Pod shop/web", "time": "2026-01-01T00:00:05Z"}
    server.put("pods", [row("pods", id="shop/web", state="running", node="n1")])
    server.put("events", [row("events", id="1", reason="BackOff", type="Warning", **about)])
    window = opened(f"{server.url}#/events")
    lines = window.page.locator("ol.events li")
    expect(lines).to_have_count(1)
    later = {**about, "time": "2026-01-01T00:00:09Z"}
    server.put("events", [row("events", id="2", reason="Pulled", type="Normal", **later)])
    expect(lines.first).to_contain_text("Pulled")
    window.page.get_by_role("radio", name="Warning").check()
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("BackOff")
    assert "type=Warning" in window.page.url
    lines.get_by_role("link").click()
    expect(window.details).to_contain_text("shop/web")


def test_nodes_stand_in_a_table_that_can_be_sorted(shop: str, opened: Opened) -> None:
    window = opened(shop + "#/nodes")
    names = window.page.get_by_role("table", name="Nodes").locator("tbody th")
    expect(names).to_have_count(8)
    expect(names.first).to_have_text("database-a1")
    window.page.get_by_role("button", name="volumes").click()
    expect(names.first.locator("..")).to_contain_text("2 of 2")


def test_the_search_finds_a_pod_and_goes_to_its_bay(shop: str, opened: Opened) -> None:
    window = opened(shop)
    window.drawn()
    window.page.get_by_role("combobox").fill("orders")
    expect(window.page.get_by_role("option").first).to_contain_text("shop/orders-0")
    window.page.get_by_role("option").first.click()
    expect(window.details).to_contain_text("shop/orders-0")
    assert window.reads("[...bayplan.board.matching]") == ["database-a1"]
