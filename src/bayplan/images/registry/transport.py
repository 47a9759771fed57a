"""Requests to a registry: authentication, redirects, and errors.

Credentials are only sent to the host they are for: a redirect to another scheme, host or port is
followed without them, and `.netrc` is not read. After a 401 the request is sent once more with
authorization; a second 401 is final. Redirects are checked in `bayplan.images.registry.tokens`.
Failures that may be retried raise `TransientError`.
"""

import contextlib
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from bayplan.client.config.loader import proxy_for
from bayplan.client.errors import ConfigError
from bayplan.images.registry.credentials import RegistryCredentials
from bayplan.images.registry.errors import (
    RETRIED_STATUSES,
    AuthenticationError,
    ImageNotFoundError,
    PullError,
    TransientError,
    parse_retry_after,
)
from bayplan.images.registry.hosts import RegistryHost
from bayplan.images.registry.tokens import (
    RegistryTokens,
    TokenKey,
    check_redirect,
    origin_of,
    parse_challenges,
    redirect_target,
)

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_REDIRECT_LIMIT = 5
_REASON_LIMIT = 4096


class RegistryTimeouts(msgspec.Struct, frozen=True):
    """Time limits of requests to a registry, in seconds."""

    connect: float = 15.0
    silence: float = 30.0  # between two reads, and for the first byte
    document: float = 120.0  # for a whole manifest or token response


DEFAULT_TIMEOUTS = RegistryTimeouts()


class RegistryRequest(msgspec.Struct, frozen=True):
    """A request to a registry host."""

    method: str
    host: RegistryHost
    repository: str
    path: str  # below the host's base, or a complete URL for foreign layers
    credentials: RegistryCredentials | None = None
    headers: dict[str, str] = {}
    query: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The complete URL."""
        return self.path if "://" in self.path else f"{self.host.base}/{self.path}"

    @property
    def token_key(self) -> TokenKey:
        """The cache key of its authorization."""
        return TokenKey(origin_of(self.url), self.repository, self.credentials)


class RegistryTransport:
    """Sends requests to registries, and owns the connections."""

    def __init__(
        self,
        timeouts: RegistryTimeouts = DEFAULT_TIMEOUTS,
        clock: Callable[[], float] = time.time,
        environment: Mapping[str, str] = os.environ,
        resolver: AbstractResolver | None = None,
    ) -> None:
        self.timeouts = timeouts
        self._environment = environment
        limits = aiohttp.ClientTimeout(
            total=None, connect=timeouts.connect, sock_read=timeouts.silence
        )
        self._session = aiohttp.ClientSession(
            timeout=limits,
            auto_decompress=False,
            connector=aiohttp.TCPConnector(resolver=resolver),
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._clock = clock
        self._tokens = RegistryTokens(self._send_once, clock, timeouts.document)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @contextlib.asynccontextmanager
    async def send(self, request: RegistryRequest) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; yield the successful response, whose body is not read yet."""
        try:
            response = await self._authorized(request)
            async with response:
                await self._check(request, response)
                yield response
        except (aiohttp.ClientSSLError, aiohttp.InvalidURL, ConfigError) as error:
            raise PullError(f"{urlsplit(request.url).netloc}: {error}") from error
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            place, kind = urlsplit(request.url).netloc, type(error).__name__
            raise TransientError(
                f"{place}: {str(error) or 'no answer in time'} ({kind})"
            ) from error

    async def _authorized(self, request: RegistryRequest) -> aiohttp.ClientResponse:
        key = request.token_key
        response = await self._follow(request, self._tokens.cached(key))
        elsewhere = origin_of(str(response.url)) != key.origin
        if response.status != 401 or elsewhere:
            # A host after a redirect must not get the registry's credentials.
            return response
        challenges = parse_challenges(response.headers.getall("WWW-Authenticate", []))
        response.release()
        header = await self._tokens.authorize(key, challenges)
        return await self._follow(request, header)

    async def _follow(
        self, request: RegistryRequest, authorization: str | None
    ) -> aiohttp.ClientResponse:
        url, origin = request.url, origin_of(request.url)
        check_redirect(request.host.base, url, allow_http=True)
        for _ in range(_REDIRECT_LIMIT + 1):
            own = origin_of(url) == origin
            response = await self._once(request, url, authorization if own else None, own=own)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return response
            response.release()
            url = redirect_target(url, location)
        raise PullError(
            f"{urlsplit(request.url).netloc} redirects more than {_REDIRECT_LIMIT} times"
        )

    async def _once(
        self, request: RegistryRequest, url: str, authorization: str | None, *, own: bool
    ) -> aiohttp.ClientResponse:
        headers = {"Accept-Encoding": "identity", **request.headers}
        if own:
            headers.update(request.host.headers)
        if authorization:
            headers["Authorization"] = authorization
        encoded = URL(url, encoded=True)
        return await self._send_once(
            request.method,
            encoded.update_query(request.query) if own and request.query else encoded,
            headers=headers,
            ssl=_trust(request.host.ca, request.host.skip_verify) if own else True,
        )

    async def _send_once(self, method: str, url: URL, **more: Any) -> aiohttp.ClientResponse:
        """Send one request through the environment's proxy."""
        proxy = proxy_for(str(url), "", self._environment)
        return await self._session.request(method, url, allow_redirects=False, proxy=proxy, **more)

    async def _check(self, request: RegistryRequest, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status in {200, 206, 416}:
            return
        place = urlsplit(request.url).netloc
        message = f"{place} answers {status} to {request.path}{await _reason(response)}"
        if status in RETRIED_STATUSES:
            wait = parse_retry_after(response.headers.get("Retry-After"), self._clock())
            raise TransientError(message, wait)
        if status in {401, 403}:
            raise AuthenticationError(message)
        raise ImageNotFoundError(message) if status == 404 else PullError(message)


@lru_cache(maxsize=32)
def _trust(ca: tuple[str, ...], skip_verify: bool) -> ssl.SSLContext | bool:
    if skip_verify:
        return False
    if not ca:
        return True
    context = ssl.create_default_context()
    for path in ca:
        context.load_verify_locations(path)
    return context


class _RegistryError(msgspec.Struct):
    code: str = ""
    message: str = ""


class _RegistryErrors(msgspec.Struct):
    errors: list[_RegistryError] = []


async def _reason(response: aiohttp.ClientResponse) -> str:
    """Return the registry's error text, printable and shortened."""
    body = await response.content.read(_REASON_LIMIT)
    try:
        errors = msgspec.json.decode(body, type=_RegistryErrors).errors
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    text = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
    return f" ({''.join(c for c in text if c.isprintable())[:300]})" if text else ""
