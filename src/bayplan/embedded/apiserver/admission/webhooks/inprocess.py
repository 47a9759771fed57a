"""Webhooks of the same process: ASGI applications, known by URL or by service.

    InProcessPoster({"https://hooks.example.com": app, "kube-system/admission": app})

A URL stands for everything below it; a service for everything that its clients ask it. Whoever is
not known is asked otherwise, if there is another way; in virtual time there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from bayplan.embedded.apiserver.admission.webhooks.posting import (
    MOST_BYTES,
    CallFailed,
    Poster,
    Where,
)
from bayplan.embedded.asgi import App, Asked, CutShort, Reply, calling

_HEADERS = (("Content-Type", "application/json"), ("Accept", "application/json"))


class InProcessPoster:
    """Takes reviews to applications in this process."""

    def __init__(self, apps: Mapping[str, App], otherwise: Poster | None = None) -> None:
        self._apps = {name.rstrip("/"): app for name, app in apps.items()}
        self._otherwise = otherwise

    async def close(self) -> None:
        """Let go of what the other way holds."""
        if self._otherwise is not None:
            await self._otherwise.close()

    async def post(self, where: Where, review: bytes) -> bytes:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
        app = self._find(where)
        if app is None:
            return await self._elsewhere(where, review)
        parts = urlsplit(where.url)
        path = where.path or parts.path or "/"
        asked = Asked("POST", path, parts.query, _HEADERS, review)
        try:
            async with calling(app, asked) as reply:
                return await _read(reply)
        except CutShort as problem:
            raise CallFailed("the webhook did not answer") from problem

    def _find(self, where: Where) -> App | None:
        if not where.url:
            return self._apps.get(f"{where.namespace}/{where.service}")
        parts = urlsplit(where.url)
        known = f"{parts.scheme}://{parts.netloc}{parts.path}".rstrip("/")
        while known not in self._apps and known.count("/") > 2:
            known = known.rpartition("/")[0]
        return self._apps.get(known)

    async def _elsewhere(self, where: Where, review: bytes) -> bytes:
        if self._otherwise is None:
            name = where.url or f"service {where.namespace}/{where.service}"
            raise CallFailed(f"nothing in this process answers for {name}")
        return await self._otherwise.post(where, review)


async def _read(reply: Reply) -> bytes:
    if reply.status != 200:
        raise CallFailed(f"the webhook answered with HTTP {reply.status}")
    parts: list[bytes] = []
    while part := await reply.next_chunk():
        parts.append(part)
        if sum(map(len, parts)) > MOST_BYTES:
            raise CallFailed("the webhook's answer is too large")
    return b"".join(parts)
