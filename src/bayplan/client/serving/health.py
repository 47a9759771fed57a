"""A daemon's own pages: whether it lives, whether it is ready, and what it counts.

    async with serve_health("127.0.0.1", 0, HealthPages(ready=..., metrics=...)) as url: ...

They are read-only, ask for no token and tell no secrets, so they listen on this machine alone
unless somebody says otherwise. HealthPages that tell more than that are guarded: whoever asks from
elsewhere needs the token, and without one they are for this machine only.
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
    """What the pages say."""

    ready: Callable[[], str]
    """Why it is not ready; empty if it is."""
    metrics: Callable[[], bytes]
    """All that is counted, as Prometheus reads it."""
    guarded: Mapping[str, Callable[[], bytes]] = field(default_factory=dict)
    """By path, further pages in JSON."""
    token: str = ""
    """What lets others than this machine see those."""


@asynccontextmanager
async def serve_health(host: str, port: int, pages: HealthPages) -> AsyncIterator[str]:
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
        if not (_is_near(request) or _has_token(request, token)):
            return web.Response(text="this page needs a token", status=403)
        return web.Response(body=page(), content_type="application/json")

    return answer


def _is_near(request: web.Request) -> bool:
    """Whether a request comes from this machine, and not through somebody else."""
    if "X-Forwarded-For" in request.headers or "Forwarded" in request.headers:
        return False
    try:
        return ipaddress.ip_address(request.remote or "").is_loopback
    except ValueError:
        return False


def _has_token(request: web.Request, token: str) -> bool:
    said = request.headers.get("Authorization", "").encode()
    return bool(token) and hmac.compare_digest(said, f"Bearer {token}".encode())
