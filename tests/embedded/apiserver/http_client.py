"""A bare HTTP client, so that tests see exactly what the server says."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Self

import aiohttp

from bayplan.embedded.apiserver.server import ApiServer

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"


class Reply(NamedTuple):
    """An answer."""

    code: int
    body: Any
    headers: dict[str, str]


class Http:
    """Talks to one server as one user."""

    def __init__(self, server: ApiServer, token: str | None = None) -> None:
        self._token = server.admin_token if token is None else token
        self._context = ssl.create_default_context(
            cadata=server.authority.pair.certificate.decode()
        )
        self._base = server.url

    async def __aenter__(self) -> Self:
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        connector = aiohttp.TCPConnector(ssl=self._context)
        self.session = aiohttp.ClientSession(self._base, headers=headers, connector=connector)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def __call__(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> Reply:
        """Send one request; a body that is not bytes goes as JSON."""
        sent = dict(headers or {})
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        async with self.session.request(method, path, data=data, headers=sent) as response:
            text = await response.read()
            is_json = response.content_type == "application/json"
            parsed = json.loads(text) if is_json else text
            return Reply(response.status, parsed, dict(response.headers))

    async def get(self, path: str, **headers: str) -> Reply:
        """GET."""
        return await self("GET", path, headers={k.replace("_", "-"): v for k, v in headers.items()})

    async def post(self, path: str, body: Any) -> Reply:
        """POST."""
        return await self("POST", path, body)

    async def put(self, path: str, body: Any) -> Reply:
        """PUT."""
        return await self("PUT", path, body)

    async def patch(self, path: str, body: Any, kind: str = MERGE) -> Reply:
        """PATCH."""
        return await self("PATCH", path, body, {"Content-Type": kind})

    async def delete(self, path: str, body: Any = None) -> Reply:
        """DELETE."""
        return await self("DELETE", path, body)

    @asynccontextmanager
    async def watch(self, path: str) -> AsyncIterator[AsyncIterator[Any]]:
        """A watch, as an iterator over its events."""
        joiner = "&" if "?" in path else "?"
        async with self.session.get(f"{path}{joiner}watch=true") as response:
            yield _events(response)


async def _events(response: aiohttp.ClientResponse) -> AsyncIterator[Any]:
    if response.status != 200:
        yield {"type": "HTTP", "object": json.loads(await response.read())}
        return
    pending = b""
    async for chunk in response.content.iter_any():
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            yield json.loads(line)
