"""What the page does when the server goes, comes back, resets it, or wants a token."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from bayplan.ui.changelog import PageChangeLog
from bayplan.ui.tables import Row
from tests.ui.browser.conftest import Opened
from tests.ui.browser.page_servers import FakeBackend, PageServerThread, row

pytestmark = pytest.mark.whole


TOKEN = "a-token-of-enough-letters"
REFUSED = "ERR_CONNECTION_REFUSED"
CUT = "ERR_INCOMPLETE_CHUNKED_ENCODING"


def node(name: str) -> Row:
    return row("nodes", id=name, cpu=4000, memory=1 << 34, ready="True")


@pytest.fixture
def url(server: PageServerThread) -> str:
    server.put("nodes", [node("n1")])
    return server.url


def test_a_change_is_shown_as_it_comes(server: PageServerThread, url: str, opened: Opened) -> None:
    window = opened(url + "#/nodes")
    expect(window.status).to_contain_text("live")
    names = window.page.get_by_role("table", name="Nodes").locator("tbody th")
    expect(names).to_have_text(["n1"])
    server.put("nodes", [node("n2")])
    expect(names).to_have_text(["n1", "n2"])
    assert server.backend.states == 1


def test_a_stream_that_breaks_is_taken_up_where_it_was(
    server: PageServerThread, url: str, opened: Opened
) -> None:
    window = opened(url + "#/nodes")
    window.expected += [REFUSED, CUT]
    expect(window.status).to_contain_text("live")
    server.close()
    expect(window.status).to_contain_text("reconnecting")
    server.put("nodes", [node("n2")])
    server.serve()
    expect(window.status).to_contain_text("live")
    names = window.page.get_by_role("table", name="Nodes").locator("tbody th")
    expect(names).to_have_text(["n1", "n2"])
    assert server.backend.states == 1


def test_another_server_at_the_same_address_is_asked_for_everything(
    server: PageServerThread, url: str, opened: Opened
) -> None:
    window = opened(url + "#/nodes")
    window.expected += [REFUSED, CUT]
    expect(window.status).to_contain_text("live")
    server.close()
    expect(window.status).to_contain_text("reconnecting")
    again = window.page.get_by_role("button", name="Reconnect")
    expect(again).to_be_visible()
    server.backend = FakeBackend()
    for name in ("other-1", "other-2"):
        server.backend.put("nodes", [node(name)])
    server.serve()
    again.evaluate_all("all => all.forEach((one) => one.click())")  # unless it did by itself
    names = window.page.get_by_role("table", name="Nodes").locator("tbody th")
    expect(names).to_have_text(["other-1", "other-2"])


def test_who_is_too_slow_fetches_the_whole_again(
    server: PageServerThread, url: str, opened: Opened
) -> None:
    window = opened(url + "#/nodes")
    window.expected += [REFUSED, CUT]
    expect(window.status).to_contain_text("live")
    server.close()
    expect(window.status).to_contain_text("reconnecting")
    server.backend.change_log = PageChangeLog(most=2, start=server.backend.change_log.seq)
    for i in range(5):
        server.put("nodes", [node(f"later-{i}")])
    server.serve()
    names = window.page.get_by_role("table", name="Nodes").locator("tbody th")
    expect(names).to_have_count(6)
    assert server.backend.states == 2


def test_without_the_token_nothing_is_shown_and_with_it_the_address_forgets_it(
    opened: Opened,
) -> None:
    backend = FakeBackend()
    backend.put("nodes", [node("secret-node")])
    with PageServerThread(backend, TOKEN).running() as url:
        window = opened(f"{url}?token={TOKEN}")
        window.drawn()
        assert TOKEN not in window.page.url
        assert TOKEN not in window.reads("document.documentElement.outerHTML")
        assert window.reads("document.cookie") == ""
        window.page.context.clear_cookies()
        window.expected += ["401"]
        answer = window.page.goto(url)
        assert answer is not None
        assert answer.status == 401
        expect(window.page.locator("body")).not_to_contain_text("secret-node")


def test_a_token_that_is_taken_away_is_asked_for(opened: Opened) -> None:
    backend = FakeBackend()
    backend.put("nodes", [node("n1")])
    server = PageServerThread(backend, TOKEN)
    with server.running() as url:
        window = opened(f"{url}?token={TOKEN}")
        window.expected += [REFUSED, CUT, "401"]
        expect(window.status).to_contain_text("live")
        window.page.context.clear_cookies()
        server.close()
        server.serve()
        expect(window.status).to_contain_text("access denied")
        expect(window.status).to_have_attribute(
            "title", "The server requires a token: open the address that bayplan ui printed."
        )


def test_what_could_not_be_read_is_noted(
    server: PageServerThread, url: str, opened: Opened
) -> None:
    server.backend.notes = ["queues cannot be read (forbidden): data that needs them is not shown"]
    window = opened(url)
    notes = window.page.get_by_role("complementary", name="Data that could not be read")
    expect(notes).to_contain_text("queues cannot be read")
    notes.get_by_role("button").click()
    expect(notes).to_have_count(0)
