"""Calling webhooks: over HTTPS, with their CA, in time, and never reading more than is sane."""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode, encode
from bayplan.embedded.apiserver.rest.backend import Backend
from bayplan.embedded.apiserver.store.entry import Key

if TYPE_CHECKING:
    import aiohttp

_MOST_BYTES = 4 * 1024 * 1024


class CallFailed(Exception):  # noqa: N818 - an outcome that callers handle
    """A webhook that could not be asked."""


class Address(NamedTuple):
    """Where a webhook listens, and the name that its certificate must have."""

    url: str
    server_name: str | None = None


class WebhookClient:
    """Sends reviews to webhooks."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._session: aiohttp.ClientSession | None = None

    async def call(self, hook: JsonObject, review: JsonObject) -> JsonValue:
        """The webhook's answer; `CallFailed` if there is none that can be read."""
        config = hook.get("clientConfig") or {}
        seconds = hook.get("timeoutSeconds") or 10
        try:
            async with asyncio.timeout(seconds):
                return await self._post(self._address(config), config.get("caBundle"), review)
        except TimeoutError as problem:
            raise CallFailed("context deadline exceeded") from problem

    async def close(self) -> None:
        """Let go of all connections."""
        if self._session is not None:
            await self._session.close()

    async def _post(self, address: Address, bundle: str | None, review: JsonObject) -> JsonValue:
        import aiohttp  # noqa: PLC0415 - slow to import, needed only where there are webhooks

        if self._session is None:
            self._session = aiohttp.ClientSession()
        try:
            async with self._session.post(
                address.url,
                data=encode(review),
                headers={"Content-Type": "application/json"},
                ssl=_tls(bundle),
                server_hostname=address.server_name,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    raise CallFailed(f"the webhook answered with HTTP {response.status}")
                return decode(await _bounded(response.content))
        except (aiohttp.ClientError, OSError, ValueError, RecursionError) as problem:
            raise CallFailed(f"{type(problem).__name__}: {problem}") from problem

    def _address(self, config: JsonObject) -> Address:
        url, service = config.get("url"), config.get("service")
        if url:
            if not str(url).startswith("https://"):
                raise CallFailed("the webhook's URL must begin with https://")
            return Address(str(url))
        if not service:
            raise CallFailed("the webhook has neither a URL nor a service")
        return self._service_address(service)

    def _service_address(self, service: JsonObject) -> Address:
        """A service's first endpoint: there is no cluster network to go through."""
        namespace, name = service.get("namespace") or "", service.get("name") or ""
        entry = self._backend.store.get(Key("endpoints", namespace, name))
        for subset in (entry.object().get("subsets") or ()) if entry is not None else ():
            for address in subset.get("addresses") or ():
                port = next((one.get("port") for one in subset.get("ports") or ()), 443)
                path = str(service.get("path") or "/").lstrip("/")
                return Address(
                    f"https://{address.get('ip')}:{port}/{path}", f"{name}.{namespace}.svc"
                )
        raise CallFailed(f'service "{namespace}/{name}" has no endpoints')


async def _bounded(stream: aiohttp.StreamReader) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in stream.iter_any():
        size += len(part)
        if size > _MOST_BYTES:
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
