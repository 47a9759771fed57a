"""Between boto3 and moto's server: carries what is asked, and lets things go wrong on the way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs

from aiohttp import ClientSession, web

Trouble = Callable[[dict[str, str]], Awaitable[web.StreamResponse | None]]
"""Given a question, answers it instead of AWS; None lets it through."""


@dataclass
class Wire:
    """What was asked, and what goes wrong."""

    target: str
    url: str = ""
    asked: list[str] = field(default_factory=list)
    troubles: dict[str, Trouble] = field(default_factory=dict)
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by every answer."""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        said = {key: value[0] for key, value in parse_qs(body.decode()).items()}
        action = said.get("Action", "")
        self.asked.append(action)
        trouble = self.troubles.get(action) or self.troubles.get("*")
        if trouble is not None:
            instead = await trouble(said)
            if instead is not None:
                return instead
        answer = await self._carry(request, body)
        self.news.set()
        return answer

    async def _carry(self, request: web.Request, body: bytes) -> web.Response:
        headers = {key: value for key, value in request.headers.items() if key != "Host"}
        async with (
            ClientSession() as session,
            session.post(self.target, data=body, headers=headers) as reply,
        ):
            kind = reply.headers.get("Content-Type", "text/xml").partition(";")[0]
            text = await reply.read()
            return web.Response(body=text, status=reply.status, content_type=kind)

    def fails(self, action: str, code: str, status: int = 400, *, times: int = 10**6) -> None:
        """Refuse an action, so many times."""
        left = [times]

        async def trouble(_: dict[str, str]) -> web.Response | None:
            left[0] -= 1
            return refusal(code, status) if left[0] >= 0 else None

        self.troubles[action] = trouble

    def says(self, action: str, body: str) -> None:
        """Answer an action with that."""

        async def trouble(_: dict[str, str]) -> web.Response:
            return web.Response(text=body, content_type="text/xml")

        self.troubles[action] = trouble

    def hangs(self, action: str) -> None:
        """Never answer an action."""

        async def trouble(_: dict[str, str]) -> web.Response:
            await asyncio.Event().wait()
            return web.Response()

        self.troubles[action] = trouble


def refusal(code: str, status: int, message: str = "no") -> web.Response:
    error = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    text = f"<ErrorResponse>{error}<RequestId>r</RequestId></ErrorResponse>"
    return web.Response(text=text, status=status, content_type="text/xml")


@asynccontextmanager
async def wired(target: str) -> AsyncIterator[Wire]:
    """A wire to a server, while the context lasts."""
    wire = Wire(target)
    app = web.Application()
    app.router.add_post("/{path:.*}", wire.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        wire.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield wire
    finally:
        await runner.cleanup()
