"""A daemon's own pages: whether it lives, whether it is ready, and what it counts.

    async with serve_pages("127.0.0.1", 0, Pages(ready=..., metrics=...)) as url: ...

They are read-only, ask for no token and tell no secrets, so they listen on this machine alone
unless somebody says otherwise.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Pages:
    """What the pages say."""

    ready: Callable[[], str]
    """Why it is not ready; empty if it is."""
    metrics: Callable[[], bytes]
    """All that is counted, as Prometheus reads it."""


@asynccontextmanager
async def serve_pages(host: str, port: int, pages: Pages) -> AsyncIterator[str]:
    """Serve them for as long as the context lasts; gives the URL. OSError if that cannot be."""
    runner = web.AppRunner(_app(pages), access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        found = runner.addresses[0]
        shown = f"[{found[0]}]" if ":" in found[0] else found[0]
        yield f"http://{shown}:{found[1]}"
    finally:
        await runner.cleanup()


def _app(pages: Pages) -> web.Application:
    async def alive(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def ready(_: web.Request) -> web.Response:
        problem = pages.ready()
        return web.Response(text=problem or "ok", status=503 if problem else 200)

    async def metrics(_: web.Request) -> web.Response:
        return web.Response(body=pages.metrics(), headers={"Content-Type": METRICS_TYPE})

    app = web.Application()
    for path in ("/healthz", "/livez"):
        app.router.add_get(path, alive)
    app.router.add_get("/readyz", ready)
    app.router.add_get("/metrics", metrics)
    return app
