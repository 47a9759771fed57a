"""A daemon's health endpoint: liveness, readiness, metrics and further pages.

    async with serve_health("127.0.0.1", 0, HealthPages(ready=..., metrics=...)) as url: ...

These pages are read-only and hold no secrets, so they need no token; by default they listen on this
machine only. Guarded pages show more: requests from other machines need the token, and without a
configured token only this machine may read them.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class HealthPages:
    """The contents of the pages."""

    ready: Callable[[], str]
    """Returns why the daemon is not ready; empty if it is."""
    metrics: Callable[[], bytes]
    """Returns the metrics in Prometheus' text format."""
    guarded: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    """Further pages in JSON, by path."""
    token: str = ""
    """The token with which other machines may read guarded pages."""


@asynccontextmanager
async def serve_health(host: str, port: int, pages: HealthPages) -> AsyncIterator[str]:
    """Serve the pages while the context is open; yield the URL. OSError if it cannot listen."""
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


def _app(pages: HealthPages) -> web.Application:
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
    for path, page in pages.guarded.items():
        app.router.add_get(path, _guarded(page, pages.token))
    return app


def _guarded(
    page: Callable[[], bytes], token: str
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def answer(request: web.Request) -> web.Response:
        if not (_is_local(request) or _has_token(request, token)):
            return web.Response(text="this page needs a token", status=403)
        return web.Response(body=page(), content_type="application/json")

    return answer


def _is_local(request: web.Request) -> bool:
    """Whether a request comes from this machine, and not through a proxy."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        return False


def _has_token(request: web.Request, token: str) -> bool:
    authorization = request.headers.get("Authorization", "").encode()
    return bool(token) and hmac.compare_digest(authorization, f"Bearer {token}".encode())
