"""Who may ask, what they are told, and how little that a browser may do with it."""

from __future__ import annotations

import pytest
from yarl import URL

from bayplan.fit import Profile
from bayplan.ui.answers import report_answers
from bayplan.ui.server import Guard
from tests.builders import make_node, make_pod
from tests.ui.pages import browsing, page_of, tables_of

pytestmark = pytest.mark.whole


TOKEN = "a-token-that-is-long-enough"


async def test_the_state_has_every_row_under_its_columns() -> None:
    async with browsing(page_of(make_node("n1").obj(), make_pod("p").node("n1").obj())) as browser:
        state = await browser.state()
    assert state["format"] == 1
    assert state["source"] == {"kind": "dump", "name": "test", "live": False}
    assert tables_of(state)["pods"]["default/p"][1] == "n1"


async def test_the_state_is_compressed_for_who_takes_it() -> None:
    async with browsing(page_of(make_node("n1").obj())) as browser:
        async with browser.session.get("api/state") as packed:
            assert packed.headers["Content-Encoding"] == "gzip"
        async with browser.session.get("api/state", headers={"Accept-Encoding": ""}) as plain:
            assert "Content-Encoding" not in plain.headers


@pytest.mark.parametrize("path", ["", "api/state", "nowhere", "api/explain?pod=a/b"])
async def test_every_answer_forbids_what_the_page_does_not_need(path: str) -> None:
    async with browsing(page_of()) as browser, browser.session.get(path) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "'unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_nothing_but_reading_is_served(method: str) -> None:
    async with (
        browsing(page_of()) as browser,
        browser.session.request(method, "api/state") as answer,
    ):
        assert answer.status == 405


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:80", 200),
        ("[::1]:80", 200),
        ("10.1.2.3", 200),
        ("page.example", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example:80", 421),
        ("localhost.evil.example", 421),
    ],
)
async def test_only_names_of_ours_are_answered(host: str, status: int) -> None:
    guard = Guard(names=frozenset({"page.example"}))
    async with (
        browsing(page_of(), guard) as browser,
        browser.session.get("api/state", headers={"Host": host}) as answer,
    ):
        assert answer.status == status


async def test_without_the_token_nothing_is_told() -> None:
    async with browsing(page_of(make_node("n1").obj()), Guard(token=TOKEN)) as browser:
        for path in ("", "api/state", "api/stream", "api/explain?pod=a/b", "?token=wrong"):
            async with browser.session.get(path) as answer:
                assert answer.status == 401
                assert TOKEN not in await answer.text()


async def test_the_address_with_the_token_gives_a_cookie_that_lets_in() -> None:
    async with browsing(page_of(), Guard(token=TOKEN)) as browser:
        async with browser.session.get(f"?token={TOKEN}", allow_redirects=False) as answer:
            assert answer.status == 303
            cookie = answer.headers["Set-Cookie"]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            value = cookie.partition(";")[0]
        async with browser.session.get("api/state", headers={"Cookie": value}) as answer:
            assert answer.status == 200
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        async with browser.session.get("api/state", headers=bearer) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    "query",
    [
        "state?at=x",
        "state?at=5",
        "stream?after=x",
        "changes?after=0",
        "timeline",
        "explain?pod=a/b&after=1",
    ],
)
async def test_what_cannot_be_answered_is_said(query: str) -> None:
    async with browsing(page_of()) as browser, browser.session.get(f"api/{query}") as answer:
        assert answer.status == 400
        assert (await answer.json())["error"]


async def test_a_pod_that_came_after_another_was_explained_is_explained_at_once() -> None:
    page = page_of(make_pod("first").obj(), answers=report_answers(Profile()))
    async with browsing(page) as browser:
        for name in ("first", "second"):
            page.picture.snapshot.put(make_pod(name).obj())
            async with browser.session.get(f"api/explain?pod=default/{name}") as answer:
                assert (answer.status, (await answer.json())["pod"]) == (200, f"default/{name}")
        async with browser.session.get("api/explain?pod=default/third") as answer:
            assert answer.status == 404


@pytest.mark.parametrize("path", ["../pyproject.toml", "%2e%2e/ui/page.py", "assets/../../page.py"])
async def test_no_path_leads_out_of_the_pages_files(path: str) -> None:
    async with browsing(page_of()) as browser:
        url = str(browser.session._base_url) + path
        async with browser.session.get(URL(url, encoded=True)) as answer:
            assert answer.status == 404
