"""One request to a registry: logging in, redirects, and what its status means.

Credentials stay with the host they are for: a redirect to any other scheme, host or port is
followed without them. A 401 is answered once; a second one is final, so a registry that never
stops asking cannot keep us busy. Failures worth another try leave as `TransientError`, everything
else as the error it is.
"""

import contextlib
import ssl
import time
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec
from yarl import URL

from bayplan.images.registry.challenges import parse_challenges
from bayplan.images.registry.credentials import Credentials
from bayplan.images.registry.errors import AuthenticationError, NotFoundError, PullError
from bayplan.images.registry.hosts import Host
from bayplan.images.registry.reference import is_loopback
from bayplan.images.registry.retry import RETRIED_STATUSES, TransientError, parse_retry_after
from bayplan.images.registry.tokens import TokenKey, Tokens

_REDIRECTS = frozenset((301, 302, 303, 307, 308))
_REDIRECT_LIMIT = 5
_REASON_LIMIT = 4096


class Timeouts(msgspec.Struct, frozen=True):
    """How long a registry may keep us waiting, in seconds."""

    connect: float = 15.0
    silence: float = 30.0  # between two reads, and for the first byte


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
        return TokenKey(urlsplit(self.url).netloc, self.repository, self.credentials)


class Transport:
    """Sends requests; an asynchronous context manager that owns the connections."""

    def __init__(
        self, timeouts: Timeouts = DEFAULT_TIMEOUTS, clock: Callable[[], float] = time.time
    ) -> None:
        limits = aiohttp.ClientTimeout(
            total=None, connect=timeouts.connect, sock_read=timeouts.silence
        )
        self._session = aiohttp.ClientSession(
            timeout=limits,
            auto_decompress=False,
            trust_env=True,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        self._clock = clock
        self._tokens = Tokens(self._session, clock)

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
        except (aiohttp.ClientSSLError, aiohttp.InvalidURL) as error:
            raise PullError(f"{urlsplit(request.url).netloc}: {error}") from error
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            place, kind = urlsplit(request.url).netloc, type(error).__name__
            raise TransientError(
                f"{place}: {str(error) or 'no answer in time'} ({kind})"
            ) from error

    async def _authorized(self, request: Request) -> aiohttp.ClientResponse:
        key = request.token_key
        response = await self._follow(request, self._tokens.cached(key))
        elsewhere = _origin(str(response.url)) != _origin(request.url)
        if response.status != 401 or elsewhere:
            # Whoever we were redirected to may ask for credentials, but has no claim to them.
            return response
        challenges = parse_challenges(response.headers.getall("WWW-Authenticate", []))
        response.release()
        private = urlsplit(request.url).scheme == "https"
        header = await self._tokens.answer(key, challenges, private=private)
        return await self._follow(request, header)

    async def _follow(self, request: Request, authorization: str | None) -> aiohttp.ClientResponse:
        url, origin = request.url, _origin(request.url)
        for _ in range(_REDIRECT_LIMIT + 1):
            own = _origin(url) == origin
            response = await self._once(request, url, authorization if own else None, own=own)
            location = response.headers.get("Location")
            if response.status not in _REDIRECTS or not location:
                return response
            response.release()
            url = _redirected(url, location)
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
        return await self._session.request(
            request.method,
            encoded.update_query(request.query) if own and request.query else encoded,
            headers=headers,
            allow_redirects=False,
            ssl=_trust(request.host.ca, request.host.skip_verify) if own else True,
        )

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


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def _redirected(url: str, location: str) -> str:
    target = urljoin(url, location)
    scheme = urlsplit(target).scheme
    downgrade = urlsplit(url).scheme == "https" and scheme == "http"
    if scheme not in {"http", "https"} or (downgrade and not is_loopback(_origin(target)[1])):
        raise PullError(f"{urlsplit(url).netloc} redirects to {scheme}: refused")
    return target


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
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    text = "; ".join(f"{error.code}: {error.message}" for error in errors[:3])
    return f" ({''.join(c for c in text if c.isprintable())[:300]})" if text else ""
