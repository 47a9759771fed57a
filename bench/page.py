"""The page at 5,000 nodes and 100,000 pods, in a real browser without a graphics card.

The server is the page's own, with made-up rows, so that what is measured is the browser: how soon
after the state has come the first picture is drawn, how long the work of a frame takes while the
drawing is moved at each level of detail, how long it is from one frame to the next then and while
changes stream in, how long it is from a change sent by the server to the frame that shows it, and
how much memory the page's script and its process hold.

Work is what the page's own thread does; from frame to frame there is also what chromium does to
paint without a graphics card, and whatever else the machine has to do.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from playwright.sync_api import Page, sync_playwright

from bayplan.ui.tables import Row
from bench.measure import Result, resident_memory
from tests.ui.browser.conftest import CHROMIUM, FLAGS
from tests.ui.browser.page_servers import FakeBackend, PageServerThread, row

NODES = 5000
PODS = 100_000
CHANGED = 100
"""Pods in one change."""
CHANGES = 20
STREAMED, STREAM_SECONDS = 300, 0.15
"""Pods in a change while changes stream in, and how far apart those are."""
FRAMES = 90
LEVELS = {"far": None, "bays": 30, "pods": 60, "names": 120}
"""By the detail drawn how many pixels a bay is wide; None for everything in the window."""
GROUPS = ("general", "memory", "storage", "gpu", "spot")


def cases() -> Iterator[Result]:
    """Every figure of the page."""
    server = PageServerThread(cluster())
    with server.running() as url, window() as page:
        page.goto(url)
        _until(page, "Boolean(globalThis.bayplan?.board.frames.count)")
        first, came = page.evaluate(_FIRST)
        yield Result("page/first-picture", (first - came) / 1000, "s after the state has come")
        yield Result("page/loaded", first / 1000, "s after the address was opened")
        yield Result("page/change", _change_to_drawn(server, page), "ms from sent to drawn")
        for level, width in LEVELS.items():
            yield from _frames(f"page/pan/{level}", page.evaluate(_PAN, [width, FRAMES]))
        for level in ("far", "pods"):
            with streaming(server):
                backend = page.evaluate(_PAN, [LEVELS[level], FRAMES])
            yield from _frames(f"page/stream/{level}", backend)
        yield Result("page/heap", _heap(page), "MiB")
        yield Result("page/memory", _resident(page), "MiB of its process")


def _frames(case: str, backend: list[float]) -> Iterator[Result]:
    work, hardest, between, longest = backend
    yield Result(case, work, "ms of work a frame")
    yield Result(f"{case}/hardest", hardest, "ms of work in the worst frame")
    yield Result(f"{case}/between", between, "ms from frame to frame")
    yield Result(f"{case}/longest", longest, "ms to the latest frame")


@contextmanager
def streaming(server: PageServerThread) -> Iterator[None]:
    """Let 2,000 pods a second change for as long as this lasts."""
    stop, rng = threading.Event(), random.Random(7)

    def put_rows() -> None:
        while not stop.wait(STREAM_SECONDS):
            server.put("pods", _changed(rng, STREAMED))

    putter = threading.Thread(target=put_rows)
    putter.start()
    try:
        yield
    finally:
        stop.set()
        putter.join()


def _changed(rng: random.Random, count: int) -> list[Row]:
    picked = rng.sample(range(PODS), count)
    return [_pod(i, f"{GROUPS[i % NODES % 5]}-{i % NODES}", rng) for i in picked]


def cluster() -> FakeBackend:
    """Nodes of a few groups in three zones, each with a rail, and pods of all sizes."""
    rng = random.Random(3)
    backend = FakeBackend("fleet")
    names = [f"{GROUPS[i % 5]}-{i}" for i in range(NODES)]
    bounds = {"size": 1000, "target": 1000, "min": 0, "max": 2000}
    backend.put("groups", [row("groups", id=name, title=name, **bounds) for name in GROUPS])
    backend.put("nodes", [_node(name, i) for i, name in enumerate(names)])
    backend.put("rails", [_rail(name, rng) for name in names])
    backend.put("pods", [_pod(i, names[i % NODES], rng) for i in range(PODS)])
    return backend


def _node(name: str, index: int) -> Row:
    zone, group = f"zone-{index % 3}", GROUPS[index % 5]
    where = {"zone": zone, "group": group, "type": "m5.4xlarge", "ready": "True"}
    return row("nodes", id=name, cpu=16000, memory=64 << 30, podsMax=110, upcoming=False, **where)


def _rail(name: str, rng: random.Random) -> Row:
    rail = {"node": name, "driver": "ebs.csi.aws.com", "used": rng.randrange(26), "limit": 25}
    return row("rails", id=f"{name} ebs.csi.aws.com", origin="CSINode", **rail)


def _pod(index: int, node: str, rng: random.Random) -> Row:
    busy = int(node.rpartition("-")[2]) % 7 + 1
    size = {"cpu": busy * rng.choice((25, 50, 100, 150, 300)), "memory": busy << 28}
    name = f"team-{index % 40}/app-{index % 700}-{index}"
    state = rng.choices(("running", "starting", "stuck"), (600, 12, 1))[0]
    return row("pods", id=name, node=node, owner=f"app-{index % 700}", state=state, **size)


@contextmanager
def window() -> Iterator[Page]:
    """A window of an ordinary size."""
    if CHROMIUM is None:
        raise RuntimeError("the page is measured in chromium, which is not here")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser.new_page(viewport={"width": 1600, "height": 900})
        browser.close()


_FIRST = """() => {
    const loaded = performance.getEntriesByType("resource");
    const state = loaded.find((one) => one.name.includes("api/state"));
    return [globalThis.bayplan.board.frames.first, state.responseEnd];
}"""

_PAN = """async ([width, frames]) => {
    const { board } = globalThis.bayplan, { layout } = board;
    board.look(width && [layout.w / 200, layout.h / 200, width]);
    const next = () => new Promise((done) => requestAnimationFrame(done));
    for (let i = 0; i < 5; i++) await next();
    const first = board.frames.count, between = [];
    for (let i = 0, before = await next(); i < frames; i++) {
        board.pan(8 * Math.cos(i / 7), 6 * Math.sin(i / 5));
        const now = await next();
        between.push(now - before);
        before = now;
    }
    const count = board.frames.count - first;
    const work = Array.from({ length: count }, (_, i) => board.frames.work[(first + i) % 1024]);
    return [work, between].flatMap((all) => {
        all.sort((a, b) => a - b);
        return [all[Math.floor(all.length / 2)], all.at(-1)];
    });
}"""

_DRAWN = """(seq) => new Promise((done) => {
    const { frames } = globalThis.bayplan.board;
    const look = () => frames.seq >= seq
        ? done(performance.timeOrigin + frames.last)
        : requestAnimationFrame(look);
    look();
})"""


def _change_to_drawn(server: PageServerThread, page: Page) -> float:
    """The median over several changes of a hundred pods each."""
    rng = random.Random(5)
    took: list[float] = []
    for _ in range(CHANGES):
        rows = _changed(rng, CHANGED)
        began = time.time()
        server.put("pods", rows)
        took.append(page.evaluate(_DRAWN, server.backend.change_log.seq) - began * 1000)
    return float(median(took))


def _heap(page: Page) -> float:
    session = page.context.new_cdp_session(page)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / (1 << 20)


def _resident(page: Page) -> float:
    """What the processes that draw the page have in memory."""
    browser = page.context.browser
    if browser is None:
        raise RuntimeError("the page has no browser")
    backend = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return max(resident_memory(one["id"]) for one in backend if one["type"] == "renderer")


def _until(page: Page, expression: str) -> None:
    end = time.monotonic() + 60
    while not page.evaluate(expression):
        if time.monotonic() > end:
            raise TimeoutError(expression)
        time.sleep(0.02)
