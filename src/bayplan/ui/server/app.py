"""The server: static files, the state, the stream of changes, and explanations."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from aiohttp import web
from aiohttp.typedefs import Middleware

from bayplan.ui.backend import BusyError, NotAvailableError, PageBackend
from bayplan.ui.encoder import Encoded
from bayplan.ui.server.connections import ConnectionLimiter
from bayplan.ui.server.files import INDEX, StaticFile, read_files
from bayplan.ui.server.guard import Guard, Handler, add_headers, refusal
from bayplan.ui.server.stream import send

MAX_STREAMS = 64
STATE_SECONDS = 60.0
EXPLAIN_SECONDS = 120.0
MAX_NAME = 600
MAX_PLAYED = 2000
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class PageServerOptions:
    """The options of the server."""

    host: str = "127.0.0.1"
    port: int = 0
    guard: Guard = field(default_factory=Guard)
    connections: ConnectionLimiter = field(default_factory=ConnectionLimiter)


@asynccontextmanager
async def serve(backend: PageBackend, options: PageServerOptions) -> AsyncIterator[str]:
    """Serve inside the block and yield the address; raise OSError if it cannot listen."""
    app = PageApp(backend, options.guard, options.connections)
    runner = web.AppRunner(app.app, access_log=None, shutdown_timeout=2.0)
    await runner.setup()
    try:
        async with _listening(runner, options) as (host, port):
            app.guard = replace(options.guard, cookie=f"bayplan-{port}")
            yield f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"
    finally:
        app.closing.set()
        await runner.cleanup()


@asynccontextmanager
async def _listening(
    runner: web.AppRunner, options: PageServerOptions
) -> AsyncIterator[tuple[str, int]]:
    if runner.server is None:
        raise RuntimeError("the server has not been set up")
    factory = options.connections.protocol_factory(runner.server)
    server = await asyncio.get_running_loop().create_server(factory, options.host, options.port)
    try:
        host, port = server.sockets[0].getsockname()[:2]
        yield host, port
    finally:
        server.close()


class PageApp:
    """The request handlers."""

    def __init__(self, backend: PageBackend, guard: Guard, connections: ConnectionLimiter) -> None:
        self._backend = backend
        self._files: Mapping[str, StaticFile] = read_files()
        self._streams = 0
        self.guard = guard
        self._connections = connections
        self.closing = asyncio.Event()
        self.app = web.Application(middlewares=[self._middleware()], client_max_size=1024)
        self.app.on_response_prepare.append(add_headers)
        add = self.app.router.add_get
        add("/api/state", self._state)
        add("/api/stream", self._stream)
        add("/api/changes", self._changes)
        add("/api/timeline", self._timeline)
        add("/api/explain", self._explain)
        add("/{path:.*}", self._file)

    def _middleware(self) -> Middleware:
        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            def answer(request: web.Request) -> Awaitable[web.StreamResponse]:
                self._connections.accept(request)
                return handler(request)

            try:
                return await self.guard.check(request, answer)
            except (ValueError, NotAvailableError) as error:
                return refusal(400, str(error))
            except (BusyError, TimeoutError) as error:
                return refusal(503, str(error) or "no data yet")

        return check

    async def _file(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"] or INDEX
        file = self._files.get(path)
        if file is None:
            return refusal(404, "page not found")
        answer = _packed(request, file.plain, file.gzipped)
        answer.headers["Content-Type"] = file.type
        if file.cached:
            answer.headers["Cache-Control"] = file.cached
        return answer

    async def _state(self, request: web.Request) -> web.StreamResponse:
        at = _number(request, "at")
        async with asyncio.timeout(STATE_SECONDS):
            return _json(request, await self._backend.state(at))

    async def _changes(self, request: web.Request) -> web.StreamResponse:
        after, most = _whole(request, "after", 0), _whole(request, "most", 500)
        found = await self._backend.changes(after, max(1, min(most, MAX_PLAYED)))
        return _json(request, found)

    async def _timeline(self, request: web.Request) -> web.StreamResponse:
        return _json(request, await self._backend.timeline())

    async def _explain(self, request: web.Request) -> web.StreamResponse:
        pod = request.query.get("pod", "")
        after = _whole(request, "after", 0) if "after" in request.query else None
        if not pod or len(pod) > MAX_NAME:
            return refusal(400, "pod: give it as NAMESPACE/POD")
        try:
            async with asyncio.timeout(EXPLAIN_SECONDS):
                body = await self._backend.explain(pod, after)
        except LookupError as error:
            return refusal(404, str(error.args[0]) if error.args else "pod not found")
        return web.Response(body=body, content_type=JSON)

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        seen = request.headers.get("Last-Event-ID", "")
        after = int(seen) if seen.isdecimal() and len(seen) < 18 else _whole(request, "after", -1)
        if self._streams >= MAX_STREAMS:
            return refusal(503, "too many clients of this page")
        answer = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        if request.method == "HEAD":
            return answer
        self._streams += 1
        try:
            await answer.prepare(request)
            await send(answer, self._backend.listen(after), self.closing)
        except (ConnectionError, TimeoutError):
            pass  # the client has disconnected
        finally:
            self._streams -= 1
        return answer


def _json(request: web.Request, found: Encoded) -> web.Response:
    answer = _packed(request, found.plain, found.gzipped)
    answer.content_type = JSON
    return answer


def _packed(request: web.Request, plain: bytes, packed: bytes | None) -> web.Response:
    if packed is None or "gzip" not in request.headers.get("Accept-Encoding", ""):
        return web.Response(body=plain)
    headers = {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return web.Response(body=packed, headers=headers)


def _number(request: web.Request, name: str) -> float | None:
    text = request.query.get(name)
    if text is None:
        return None
    try:
        found = float(text[:40])
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise ValueError(f"{name}: not a number of seconds")
    return found


def _whole(request: web.Request, name: str, default: int) -> int:
    text = request.query.get(name, str(default))
    if not text.lstrip("-").isdecimal() or len(text) > 18:
        raise ValueError(f"{name}: not a whole number")
    return int(text)
