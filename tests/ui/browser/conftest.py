"""One browser for the whole folder, a fresh profile for each test, and servers that end with it.

Every test ends by looking at what the browser complained of: an error on its console, a violation
of the content security policy or a request to another host fails it, unless the test said that it
would come.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, expect, sync_playwright

from tests.patience import PATIENCE
from tests.ui.browser.dumps import EXAMPLES, SHOP
from tests.ui.browser.page_servers import FakeBackend, PageServerThread
from tests.ui.browser.processes import Command, page_of
from tests.ui.browser.windows import Window

CHROMIUM = shutil.which("chromium")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the groups, whichever path is given
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them in one worker, one after the other: there is one browser."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="package")
def playwright() -> Iterator[Playwright]:
    """Ends with this folder, since no other event loop runs while it does."""
    expect.set_options(timeout=PATIENCE * 1000)
    with sync_playwright() as driver:
        yield driver


@pytest.fixture(scope="package")
def browser(playwright: Playwright) -> Iterator[Browser]:
    """The browser."""
    if CHROMIUM is None:
        pytest.skip("cannot be shown here without chromium (a Debian package)")
    browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
    yield browser
    browser.close()


Started = Callable[..., Command]


class Opened(Protocol):
    """Opens a window: `look` is anything that a browser's context can be told."""

    def __call__(self, url: str, **look: object) -> Window: ...


@pytest.fixture
def opened(browser: Browser) -> Iterator[Opened]:
    """Opens pages that are watched."""
    made: list[tuple[BrowserContext, Window]] = []

    def open_(url: str, **look: object) -> Window:
        settings = {"viewport": {"width": 1280, "height": 800}, "reduced_motion": "reduce", **look}
        context = browser.new_context(**settings)  # type: ignore[arg-type]
        page: Page = context.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        window = Window(page, url)
        made.append((context, window))
        window.visit(url)
        return window

    yield open_
    for context, _ in made:
        context.close()
    for _, window in made:
        assert window.complaints == []


@pytest.fixture
def server() -> Iterator[PageServerThread]:
    """A page that tests tell what to show."""
    server = PageServerThread(FakeBackend())
    with server.running():
        yield server


@pytest.fixture(scope="package")
def shop() -> Iterator[str]:
    """The page of a shop whose volumes are used up; it stands still, so all tests may share it."""
    yield from _served("-f", SHOP, "--groups", EXAMPLES / "groups.yaml")


@pytest.fixture(scope="package")
def batch() -> Iterator[str]:
    """The page of queues, and jobs that wait in them."""
    yield from _served("-f", EXAMPLES / "queues", "-f", EXAMPLES / "clusters/batch")


def _served(*arguments: str | Path) -> Iterator[str]:
    command = Command("ui", *map(str, arguments))
    try:
        yield page_of(command)
    finally:
        command.stop()


@pytest.fixture
def started() -> Iterator[Started]:
    """Starts `bayplan` commands that end with the test."""
    running: list[Command] = []

    def start(*arguments: str | Path) -> Command:
        running.append(Command(*map(str, arguments)))
        return running[-1]

    yield start
    for command in reversed(running):
        command.stop()
