"""A browser window that keeps its errors, with the few actions that most tests take in it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import ConsoleMessage, Error, Locator, Page, Request, expect

_MIDDLE = """(node) => {
    const { board } = globalThis.bayplan, bay = board.layout.bays.get(node), { camera } = board;
    const box = document.querySelector("canvas").getBoundingClientRect();
    return [box.x + (bay.x + bay.w / 2 - camera.x) * camera.scale,
            box.y + (bay.y + bay.h / 2 - camera.y) * camera.scale];
}"""
_HEAD = _MIDDLE.replace("bay.h / 2", "8")


class Window:
    """A window."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.expected: list[str] = []
        """Parts of complaints that the test brings about itself."""
        self._host = urlsplit(url).netloc
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)

    def visit(self, url: str) -> None:
        """Open an address from nothing, and wait until something is shown."""
        self.page.goto("about:blank")
        self.page.goto(url)
        expect(self.page.locator("main")).to_be_visible()

    def go(self, address: str) -> None:
        """Go to a place by the part of the address that the page itself reads."""
        base = self.page.url.partition("#")[0]
        self.visit(f"{base}{address}")

    def turn(self, address: str) -> None:
        """Go to such a place in the page that is open, as a link in it would."""
        view = address.removeprefix("#/").partition("?")[0]
        self.page.evaluate("address => { location.hash = address; }", address)
        expect(self.page.locator(f"main.in-{view}")).to_be_visible()

    def reads(self, expression: str) -> Any:
        """What an expression comes to in the page."""
        return self.page.evaluate(expression)

    def drawn(self) -> None:
        """Wait until bays are drawn."""
        canvas = self.page.locator("canvas")
        expect(canvas).to_be_visible()
        expect(canvas).to_have_attribute("data-drawn", "true")

    def bay(self, node: str) -> tuple[float, float]:
        """The middle of a node's bay in the window."""
        x, y = self.page.evaluate(_MIDDLE, node)
        return x, y

    def choose_bay(self, node: str) -> None:
        """Press a node's bay in its head, where no pod lies."""
        self.page.mouse.click(*self.page.evaluate(_HEAD, node))

    @property
    def details(self) -> Locator:
        return self.page.locator("aside.details")

    @property
    def status(self) -> Locator:
        return self.page.locator("header .status")

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._complain(message.text)

    def _error(self, error: Error) -> None:
        self._complain(f"{error.message}\n{error.stack}")

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("about", "data", "blob") and parts.netloc != self._host:
            self._complain(f"asked another host: {request.url}")

    def _complain(self, text: str) -> None:
        if not any(part in text for part in self.expected):
            self.complaints.append(text)
