"""One request to a registry: logging in, redirects, and what its status means.

Credentials stay with the host they are for: a redirect to any other scheme, host or port is
followed without them, and nothing is ever read from `.netrc`. A 401 is answered once; a second one
is final, so a registry that never stops asking cannot keep us busy. Where a registry may send us is
`bayplan.images.registry.tokens`' to say. Failures worth another try leave as `TransientError`,
everything else as the error it is.
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

from bayplan.client.config.loading import proxy_for
from bayplan.client.errors import ConfigError
from bayplan.images.registry.credentials import Credentials
from bayplan.images.registry.errors import (
    RETRIED_STATUSES,
    AuthenticationError,
    NotFoundError,
    PullError,
    TransientError,
    parse_retry_after,
)
from bayplan.images.registry.hosts import Host
from bayplan.images.registry.tokens import (
    TokenKey,
    Tokens,
    origin_of,
    parse_challenges,
    redirected,
    reject_detour,
)

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_REDIRECT_LIMIT = 5
_REASON_LIMIT = 4096


class Timeouts(msgspec.Struct, frozen=True):
    """How long a registry may keep us waiting, in seconds."""

    connect: float = 15.0
    silence: float = 30.0  # between two reads, and for the first byte
    document: float = 120.0  # for all of a manifest, or of a token server's answer


DEFAULT_TIMEOUTS = Timeouts()


class Request(msgspec.Struct, frozen=True):
    """What to ask of which host."""

    method: str
    host: Host
    repository: str
    path: str  # below the host's base, or a whole URL for foreign layers
    credentials: Credentials | None = None
    headers: dict[str, str] = {}
    query: dict[str, str] = {}

    @property
    def url(self) -> str:
        """The whole address."""
        return self.path if "://" in self.path else f"{self.host.base}/{self.path}"

    @property
    def token_key(self) -> TokenKey:
        """What its authorization is good for."""
        return TokenKey(origin_of(self.url), self.repository, self.credentials)


class Transport:
    """Sends requests; an asynchronous context manager that owns the connections."""

    def __init__(
        self,
        timeouts: Timeouts = DEFAULT_TIMEOUTS,
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
        self._tokens = Tokens(self._ask, clock, timeouts.document)

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @contextlib.asynccontextmanager
    async def send(self, request: Request) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; what is given out is a success, still to be read."""
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

    async def _authorized(self, request: Request) -> aiohttp.ClientResponse:
        key = request.token_key
        response = await self._follow(request, self._tokens.cached(key))
        elsewhere = origin_of(str(response.url)) != key.origin
        if response.status != 401 or elsewhere:
            # Whoever we were redirected to may ask for credentials, but has no claim to them.
            return response
        challenges = parse_challenges(response.headers.getall("WWW-Authenticate", []))
        response.release()
        header = await self._tokens.answer(key, challenges)
        return await self._follow(request, header)

    async def _follow(self, request: Request, authorization: str | None) -> aiohttp.ClientResponse:
        url, origin = request.url, origin_of(request.url)
        reject_detour(request.host.base, url, in_the_open=True)
        for _ in range(_REDIRECT_LIMIT + 1):
            own = origin_of(url) == origin
            response = await self._once(request, url, authorization if own else None, own=own)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return response
            response.release()
            url = redirected(url, location)
        raise PullError(
            f"{urlsplit(request.url).netloc} redirects more than {_REDIRECT_LIMIT} times"
        )

    async def _once(
        self, request: Request, url: str, authorization: str | None, *, own: bool
    ) -> aiohttp.ClientResponse:
        headers = {"Accept-Encoding": "identity", **request.headers}
        if own:
            headers.update(request.host.headers)
        if authorization:
            headers["Authorization"] = authorization
        encoded = URL(url, encoded=True)
        return await self._ask(
            request.method,
            encoded.update_query(request.query) if own and request.query else encoded,
            headers=headers,
            ssl=_trust(request.host.ca, request.host.skip_verify) if own else True,
        )

    async def _ask(self, method: str, url: URL, **more: Any) -> aiohttp.ClientResponse:
        """Ask once, through the environment's proxy; the session itself trusts no environment."""
        proxy = proxy_for(str(url), "", self._environment)
        return await self._session.request(method, url, allow_redirects=False, proxy=proxy, **more)

    async def _check(self, request: Request, response: aiohttp.ClientResponse) -> None:
        status = response.status
        if status in {200, 206, 416}:
            return
        place = urlsplit(request.url).netloc
        said = f"{place} answers {status} to {request.path}{await _reason(response)}"
        if status in RETRIED_STATUSES:
            wait = parse_retry_after(response.headers.get("Retry-After"), self._clock())
            raise TransientError(said, wait)
        if status in {401, 403}:
            raise AuthenticationError(said)
        raise NotFoundError(said) if status == 404 else PullError(said)


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


class _Complaint(msgspec.Struct):
    code: str = ""
    message: str = ""


class _Complaints(msgspec.Struct):
    errors: list[_Complaint] = []


async def _reason(response: aiohttp.ClientResponse) -> str:
    """Quote what the registry says about a failure, as far as it is printable and short."""
    body = await response.content.read(_REASON_LIMIT)
    try:
        errors = msgspec.json.decode(body, type=_Complaints).errors
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return ""
    text = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
    return f" ({''.join(c for c in text if c.isprintable())[:300]})" if text else ""
