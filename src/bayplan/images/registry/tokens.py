"""Authentication after a registry's 401, and the check of redirects and token servers.

A registry is not trusted. It may redirect to any public host, but not from HTTPS to HTTP, not to a
URL with a user and password, and not to this machine or its link-local network (where agents and
the cloud's metadata service listen) unless it is there itself.

Authorization headers are cached by registry, repository and credentials until shortly before they
expire, so a pull of many layers authenticates once. Tokens are requested over a connection at least
as secure as the registry's, with a time limit, and no secret is logged.
"""

import asyncio
import ipaddress
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit

import aiohttp
import msgspec
from yarl import URL

from bayplan.images.registry.credentials import RegistryCredentials
from bayplan.images.registry.errors import (
    RETRIED_STATUSES,
    AuthenticationError,
    PullError,
    TransientError,
)

_SCHEME = re.compile(r"\s*,?\s*([A-Za-z]+)\s+(?=[A-Za-z_]+\s*=)")
_PARAMETER = re.compile(r'\s*,?\s*([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_LENGTH_LIMIT = 8192


class Challenge(NamedTuple):
    """An authentication scheme that a registry offers."""

    scheme: str
    parameters: dict[str, str]


def parse_challenges(headers: list[str]) -> list[Challenge]:
    """Parse the challenges of a response, in order."""
    found: list[Challenge] = []
    for header in headers:
        found += _parse_one(header[:_LENGTH_LIMIT])
    return found


def _parse_one(header: str) -> list[Challenge]:
    found: list[Challenge] = []
    position = 0
    if header.strip().lower() in {"basic", "bearer"}:
        return [Challenge(header.strip().lower(), {})]
    while scheme := _SCHEME.match(header, position):
        parameters: dict[str, str] = {}
        position = scheme.end()
        while parameter := _PARAMETER.match(header, position):
            # The next scheme's name is followed by a blank, never by "=".
            quoted, bare = parameter[2], parameter[3]
            text = bare if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            parameters[parameter[1].lower()] = text
            position = parameter.end()
        found.append(Challenge(scheme[1].lower(), parameters))
    return found


_PORTS = {"http": 80, "https": 443}


class Origin(NamedTuple):
    """The scheme, host and port that credentials belong to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def origin_of(url: str) -> Origin:
    """Return the origin of a URL, with the default port if it has none."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise PullError(f"{url[:200]!r} is not a URL") from None
    if parts.scheme not in _PORTS or not host:
        raise PullError(f"{url[:200]!r} is not a URL of HTTP")
    return Origin(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


def redirect_target(url: str, location: str) -> str:
    """Return the URL of a redirect; PullError if it must not be followed."""
    try:
        target = urljoin(url, location)
    except ValueError:
        raise PullError(f"{origin_of(url)} redirects to an invalid URL: refused") from None
    check_redirect(url, target)
    return target


def check_redirect(url: str, target: str, *, allow_http: bool = False) -> None:
    """Raise PullError if a server may not redirect to that URL."""
    here = origin_of(url)
    scheme = target.partition(":")[0].lower()
    downgrade = here.scheme == "https" and scheme == "http"
    if scheme not in _PORTS or (downgrade and not allow_http):
        raise PullError(f"{here} redirects to {scheme[:20]}: refused")
    there = origin_of(target)
    if "@" in urlsplit(target).netloc:
        raise PullError(f"{here} redirects to {there} with a password in the address: refused")
    if _is_internal(there.host) and not _is_internal(here.host):
        raise PullError(f"{here} redirects to {there}, which is internal to this machine: refused")


def _is_internal(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified


_RESPONSE_LIMIT = 64 * 1024
_DEFAULT_LIFETIME = 60.0
_EARLY = 5.0
_CACHE_LIMIT = 1000
_CLIENT_ID = "bayplan"


class TokenKey(msgspec.Struct, frozen=True):
    """The registry, repository and credentials of a token."""

    origin: Origin
    repository: str
    credentials: RegistryCredentials | None


class _TokenResponse(msgspec.Struct):
    token: str = ""
    access_token: str = ""
    expires_in: float = 0.0


SendOnce = Callable[..., Awaitable[aiohttp.ClientResponse]]
"""Sends a request (method, URL and aiohttp's arguments), without following redirects."""


class RegistryTokens:
    """Authorization headers of registries, with a cache."""

    def __init__(self, send: SendOnce, clock: Callable[[], float], timeout: float = 120.0) -> None:
        self._send = send
        self._clock = clock
        self._timeout = timeout
        self._cache: dict[TokenKey, tuple[str, float]] = {}

    def cached(self, key: TokenKey) -> str | None:
        """Return a header that has not expired."""
        header, expires = self._cache.get(key, ("", 0.0))
        return header if expires > self._clock() else None

    async def authorize(self, key: TokenKey, challenges: list[Challenge]) -> str:
        """Return the header for a 401's challenges, and cache it."""
        self._cache.pop(key, None)
        for challenge in challenges:
            if challenge.scheme == "bearer":
                return await self._bearer(key, challenge)
            if challenge.scheme == "basic" and key.credentials and key.credentials.username:
                return self._keep(key, key.credentials.basic(), float("inf"))
        raise AuthenticationError(f"{key.origin} requires credentials for {key.repository}")

    async def _bearer(self, key: TokenKey, challenge: Challenge) -> str:
        if key.credentials and key.credentials.registry_token:
            return self._keep(key, f"Bearer {key.credentials.registry_token}", float("inf"))
        realm = challenge.parameters.get("realm", "")
        self._check_realm(key, realm)
        response = await self._request_token(key, realm, challenge.parameters)
        token = response.token or response.access_token
        if not token or not token.isprintable():
            raise AuthenticationError(
                f"{urlsplit(realm).netloc} returned no token for {key.repository}"
            )
        lifetime = response.expires_in or _DEFAULT_LIFETIME
        return self._keep(key, f"Bearer {token}", self._clock() + lifetime - _EARLY)

    def _check_realm(self, key: TokenKey, realm: str) -> None:
        try:
            check_redirect(f"{key.origin.scheme}://{key.origin}", realm)
        except PullError as error:
            raise AuthenticationError(f"token server: {error}") from None

    async def _request_token(
        self, key: TokenKey, realm: str, parameters: dict[str, str]
    ) -> _TokenResponse:
        fields = {"scope": parameters.get("scope") or f"repository:{key.repository}:pull"}
        if "service" in parameters:
            fields["service"] = parameters["service"]
        try:
            async with asyncio.timeout(self._timeout):
                async with await self._request(realm, fields, key.credentials) as response:
                    return await self._read(response, realm)
        except (aiohttp.ClientError, TimeoutError) as error:
            place = urlsplit(realm).netloc
            raise TransientError(f"token server {place}: {type(error).__name__}") from error

    async def _request(
        self, realm: str, fields: dict[str, str], credentials: RegistryCredentials | None
    ) -> aiohttp.ClientResponse:
        if credentials and credentials.identity_token:
            form = {
                **fields,
                "grant_type": "refresh_token",
                "client_id": _CLIENT_ID,
                "refresh_token": credentials.identity_token,
            }
            return await self._send("POST", URL(realm), data=form)
        headers = {}
        if credentials and credentials.username:
            headers["Authorization"] = credentials.basic()
            fields = {**fields, "account": credentials.username}
        return await self._send("GET", URL(realm), params=fields, headers=headers)

    async def _read(self, response: aiohttp.ClientResponse, realm: str) -> _TokenResponse:
        place = urlsplit(realm).netloc
        if response.status in RETRIED_STATUSES:
            raise TransientError(f"token server {place} answers {response.status}")
        if response.status != 200:
            raise AuthenticationError(f"token server {place} refused: {response.status}")
        body = await response.content.read(_RESPONSE_LIMIT)
        while len(body) < _RESPONSE_LIMIT and (
            more := await response.content.read(_RESPONSE_LIMIT)
        ):
            body += more
        try:
            return msgspec.json.decode(body, type=_TokenResponse)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise AuthenticationError(f"token server {place} did not return JSON") from None

    def _keep(self, key: TokenKey, header: str, expires: float) -> str:
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
        self._cache[key] = (header, expires)
        return header
