"""A registry that misbehaves on demand: a real HTTP server of the distribution API, with faults.

Content is served as a good registry would. A fault is a function that sees each request first and
may answer in its place.
"""

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

from aiohttp import web

from tests.images.parts.layouts import ImageBuilder

Fault = Callable[[web.Request], Awaitable[web.StreamResponse | None]]


class HostileRegistry:
    """What is served, and what was asked."""

    def __init__(self, builder: ImageBuilder) -> None:
        self.builder = builder
        self.tags: dict[str, str] = {}
        self.faults: list[Fault] = []
        self.asked: list[web.Request] = []
        self.host = ""

    def tag(self, top: dict[str, object], name: str = "image:1") -> str:
        """Name a manifest or index; gives the full reference."""
        self.tags[name.replace(":", "/manifests/")] = str(top["digest"])
        return f"{self.host}/{name}"

    def paths(self, part: str, method: str = "GET") -> list[str]:
        """Every path asked for that holds a part."""
        return [r.path for r in self.asked if part in r.path and r.method == method]

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request)
        for fault in self.faults:
            if (answer := await fault(request)) is not None:
                return answer
        return self.well(request)

    def well(self, request: web.Request) -> web.StreamResponse:
        """Answer as a good registry does."""
        name = request.path.removeprefix("/v2/")
        digest = self.tags.get(name, name.rpartition("/")[2])
        data = self.builder.blobs.get(digest)
        if data is None:
            body = {"errors": [{"code": "NAME_UNKNOWN", "message": "no such thing"}]}
            return web.json_response(body, status=404)
        headers = {"Docker-Content-Digest": digest, "Content-Type": self._type(request, data)}
        return ranged(request, data, headers)

    def _type(self, request: web.Request, data: bytes) -> str:
        if "/manifests/" not in request.path:
            return "application/octet-stream"
        return str(json.loads(data).get("mediaType", "application/json"))


def ranged(request: web.Request, data: bytes, headers: dict[str, str]) -> web.Response:
    """Answer with the range that was asked for."""
    asked = request.headers.get("Range", "")
    if not asked:
        return web.Response(body=data, headers=headers)
    start = int(asked.removeprefix("bytes=").removesuffix("-"))
    headers = {**headers, "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
    return web.Response(status=206, body=data[start:], headers=headers)


async def cut_after(request: web.Request, data: bytes, count: int) -> web.StreamResponse:
    """Announce everything, send a part, and hang up."""
    response = web.StreamResponse(headers={"Content-Length": str(len(data))})
    await response.prepare(request)
    await response.write(data[:count])
    assert request.transport is not None
    request.transport.abort()
    return response


@contextlib.asynccontextmanager
async def running_hostile(
    builder: ImageBuilder, tls: ssl.SSLContext | None = None
) -> AsyncIterator[HostileRegistry]:
    """Serve on a free port of 127.0.0.1."""
    registry = HostileRegistry(builder)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", registry.handle)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    registry.host = f"127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield registry
    finally:
        await runner.cleanup()
