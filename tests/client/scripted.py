"""A tiny HTTP server whose answers a test writes: for what no good API server would say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

import msgspec
from aiohttp import web

from bayplan.client import Access

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Scripted:
    """Answers each request with the next handler of the script, the last one over and over."""

    def __init__(self, *script: Handler) -> None:
        self._script = list(script)
        self.requests: list[web.BaseRequest] = []
        self.bodies: list[bytes] = []
        self.news = asyncio.Event()
        self._runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        self.access = Access("http://unset.invalid")

    def then(self, *more: Handler) -> None:
        """Go on with these."""
        self._script += more

    def only(self, *script: Handler) -> None:
        """Go on with these instead of what was to come."""
        self._script = list(script)

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.access = Access(f"http://{host}:{port}")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append(request)
        self.news.set()
        self.bodies.append(await request.read())
        handler = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return await handler(request)


def json(body: object, status: int = 200, **headers: str) -> Handler:
    """Answer with that JSON."""

    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        return web.Response(
            body=msgspec.json.encode(body),
            status=status,
            content_type="application/json",
            headers=named,
        )

    return handler


def refusal(code: int, reason: str = "", message: str = "no", **headers: str) -> Handler:
    """Answer with a Status."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return json({**status, "reason": reason, "message": message}, code, **headers)


def raw(body: bytes, status: int = 200, content_type: str = "application/json") -> Handler:
    """Answer with those bytes."""

    async def handler(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type=content_type)

    return handler


def stream(*events: object, then_cut: bool = False, hold: asyncio.Event | None = None) -> Handler:
    """Answer a watch with those events, and end; or cut; or first wait to be let go."""

    async def handler(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        await response.prepare(request)
        for event in events:
            await response.write(msgspec.json.encode(event) + b"\n")
        if hold is not None:
            await hold.wait()
        if then_cut:
            assert request.transport is not None
            request.transport.abort()
        return response

    return handler


async def hang_up(request: web.BaseRequest) -> web.StreamResponse:
    """Read the request, and cut the connection."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


def config_map(name: str, version: int, uid: str = "", **data: str) -> dict[str, object]:
    """A ConfigMap as a server would show it."""
    named = {"name": name, "namespace": "here", "uid": uid or f"uid-{name}"}
    return {"metadata": {**named, "resourceVersion": str(version)}, "data": data}


def event(kind: str, item: object) -> dict[str, object]:
    """One line of a watch."""
    return {"type": kind, "object": item}


def bookmark(version: int, *, initial_end: bool = False) -> dict[str, object]:
    """A bookmark, perhaps the one that ends a streaming list."""
    annotations = {"k8s.io/initial-events-end": "true"} if initial_end else {}
    meta = {"resourceVersion": str(version), "annotations": annotations}
    return event("BOOKMARK", {"metadata": meta})


def page(*items: object, version: int = 1, more: str = "") -> Handler:
    """A page of a list."""
    meta = {"resourceVersion": str(version), "continue": more}
    return json({"kind": "List", "metadata": meta, "items": items})
