"""Taking reviews to webhooks: in time, and never reading more than is sane.

What takes them is a `Poster`: `HttpsPoster` goes over the network, with the webhook's CA; the one
of `inprocess` calls applications of the same process.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode
from bayplan.embedded.apiserver.store.entry import Key
from bayplan.embedded.apiserver.store.store import Store

if TYPE_CHECKING:
    import aiohttp

MOST_BYTES = 4 * 1024 * 1024
SECONDS = 10
"""How long a webhook has that does not say its own time."""


class CallFailed(Exception):  # noqa: N818 - an outcome that callers handle
    """A webhook that could not be asked."""


class Where(NamedTuple):
    """Where a webhook is: at a URL, or behind a service."""

    url: str = ""
    namespace: str = ""
    service: str = ""
    path: str = ""
    ca_bundle: str | None = None


class Poster(Protocol):
    """Takes reviews to webhooks."""

    async def post(self, where: Where, review: bytes) -> bytes:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...


async def ask(poster: Poster, hook: JsonObject, review: JsonObject) -> JsonValue:
    """A webhook's answer; `CallFailed` if there is none in its time."""
    where = _where(hook.get("clientConfig") or {})
    try:
        async with asyncio.timeout(hook.get("timeoutSeconds") or SECONDS):
            return decode(await poster.post(where, encode(review)))
    except TimeoutError as problem:
        raise CallFailed("context deadline exceeded") from problem
    except (ValueError, RecursionError) as problem:
        raise CallFailed(f"{type(problem).__name__}: {problem}") from problem


def _where(config: JsonObject) -> Where:
    url, service = config.get("url"), config.get("service")
    if url:
        if not str(url).startswith("https://"):
            raise CallFailed("the webhook's URL must begin with https://")
        return Where(str(url), ca_bundle=config.get("caBundle"))
    if not service:
        raise CallFailed("the webhook has neither a URL nor a service")
    path = "/" + str(service.get("path") or "/").lstrip("/")
    names = (service.get("namespace") or "", service.get("name") or "")
    return Where("", *names, path, config.get("caBundle"))


class _Address(NamedTuple):
    """What to connect to, and the name that its certificate must have."""

    url: str
    server_name: str | None = None


class HttpsPoster:
    """Takes reviews over HTTPS."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()

    async def post(self, where: Where, review: bytes) -> bytes:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
        import aiohttp  # noqa: PLC0415 - slow to import, needed only where there are webhooks

        if self._session is None:
            self._session = aiohttp.ClientSession()
        address = self._address(where)
        try:
            async with self._session.post(
                address.url,
                data=review,
                headers={"Content-Type": "application/json"},
                ssl=_tls(where.ca_bundle),
                server_hostname=address.server_name,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise CallFailed(f"the webhook answered with HTTP {response.status}")
                return await _bounded(response.content)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            if isinstance(problem, TimeoutError):
                raise
            raise CallFailed(f"{type(problem).__name__}: {problem}") from problem

    def _address(self, where: Where) -> _Address:
        """A service's first endpoint: there is no cluster network to go through."""
        if where.url:
            return _Address(where.url)
        entry = self._store.get(Key("endpoints", where.namespace, where.service))
        for subset in (entry.object().get("subsets") or ()) if entry is not None else ():
            for address in subset.get("addresses") or ():
                port = next((one.get("port") for one in subset.get("ports") or ()), 443)
                url = f"https://{address.get('ip')}:{port}{where.path}"
                return _Address(url, f"{where.service}.{where.namespace}.svc")
        raise CallFailed(f'service "{where.namespace}/{where.service}" has no endpoints')


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in stream.iter_any():
        size += len(part)
        if size > MOST_BYTES:
            raise CallFailed("the webhook's answer is too large")
        parts.append(part)
    return b"".join(parts)


@lru_cache(64)
def _tls(bundle: str | None) -> ssl.SSLContext:
    if not bundle:
        return ssl.create_default_context()
    try:
        return ssl.create_default_context(cadata=base64.b64decode(bundle).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, binascii.Error) as problem:
        raise CallFailed("the webhook's caBundle is not a certificate") from problem
