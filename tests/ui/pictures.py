"""`python -m tests.ui.pictures` makes the pictures of the page, docs/pictures, from real runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from playwright.sync_api import Browser, ViewportSize, expect, sync_playwright

from bench.page import cluster
from tests.ui.browser.conftest import CHROMIUM, FLAGS
from tests.ui.browser.dumps import EXAMPLES, SHOP
from tests.ui.browser.page_servers import PageServerThread
from tests.ui.browser.processes import Command, page_of
from tests.ui.browser.windows import Window

PICTURES = Path(__file__).parents[2] / "docs/pictures"
WIDE = ViewportSize(width=1200, height=720)
PHONE = ViewportSize(width=360, height=720)


class Picture(NamedTuple):
    """What is to be seen on one."""

    name: str
    of: str
    address: str
    ready: str = "canvas[data-drawn]"
    scheme: str = "light"
    size: ViewportSize = WIDE


EXPLAINED = "section.explanation[aria-busy=false]"
ALL = (
    Picture("ui-bays", "shop", "#/bays?sel=node/worker-b1"),
    Picture("ui-bays-dark", "shop", "#/bays?sel=node/worker-b1&colour=owner", scheme="dark"),
    Picture("ui-far", "fleet", "#/bays"),
    Picture("ui-near", "fleet", "#/bays?look=9.00,13.00,118.00"),
    Picture("ui-pending", "shop", "#/pending?sel=pod/shop/ledger-16", EXPLAINED),
    Picture("ui-queues", "batch", "#/queues", "article.queue"),
    Picture("ui-plan", "shop", "#/plan", "article.plan"),
    Picture("ui-nodes", "shop", "#/nodes", "tbody tr"),
    Picture("ui-recording", "recording", "#/bays?by=memory&at=22", ".replay .u-wrap"),
    Picture("ui-phone", "shop", "#/bays?sel=node/worker-a1", size=PHONE),
)


@contextmanager
def pages() -> Iterator[dict[str, str]]:
    """By name the addresses of what is pictured."""
    with ExitStack() as stack:
        served = {
            "shop": Command("ui", "-f", str(SHOP), "--groups", str(EXAMPLES / "groups.yaml")),
            "batch": Command(
                *("ui", "-f", str(EXAMPLES / "queues"), "-f", str(EXAMPLES / "clusters/batch"))
            ),
        }
        for command in served.values():
            stack.callback(command.stop)
        served["recording"] = Command("ui", str(recorded(stack)))
        stack.callback(served["recording"].stop)
        fleet = stack.enter_context(PageServerThread(cluster()).running())
        yield {**{name: page_of(command) for name, command in served.items()}, "fleet": fleet}


def recorded(stack: ExitStack) -> Path:
    """A recording of the story in which nodes are bought for volumes, from none."""
    folder = Path(stack.enter_context(TemporaryDirectory()))
    config, story = folder / "kubeconfig", EXAMPLES / "stories/3-from-zero.yaml"
    with_ = ("--with", "scheduler,autoscaler", "--kubeconfig", str(config))
    up = Command("up", "-f", str(story), *with_)
    stack.callback(up.stop)
    up.says("(KUBECONFIG)")
    path = folder / "from-zero.bpr"
    record = Command("record", "--kubeconfig", str(config), "-o", str(path), "--for", "75s")
    stack.callback(record.stop)
    record.says(r"(\d+) changes", within=120)
    return path


def take(browser: Browser, picture: Picture, address: str, folder: Path) -> Path:
    """Write one picture; an error if the browser complained of anything."""
    context = browser.new_context(
        viewport=picture.size,
        color_scheme=picture.scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
    )
    try:
        window = Window(context.new_page(), address)
        window.visit(address + picture.address)
        expect(window.page.locator(picture.ready).first).to_be_visible()
        path = folder / f"{picture.name}.png"
        window.page.screenshot(path=path, animations="disabled")
        if window.complaints:
            raise RuntimeError(f"{picture.name}: {window.complaints}")
        return path
    finally:
        context.close()


def main(names: list[str], folder: Path = PICTURES) -> None:
    """Write those that are named, or all."""
    folder.mkdir(exist_ok=True)
    with sync_playwright() as driver, pages() as addresses:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        for picture in ALL:
            if not names or picture.name in names:
                path = take(browser, picture, addresses[picture.of], folder)
                print(f"{path.name}: {path.stat().st_size // 1024} KiB")  # noqa: T201
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
