"""Answering a registry's 401, and where it may send us: redirects and token servers.

A registry is data from strangers as much as an image is. It may send us on to whom it likes in the
open net, but not from a private connection into the open, not with a name and password that it
chose, and not to this machine or its network's own services (loopback and link-local addresses,
where agents and the cloud's metadata listen) unless it is there itself.

Headers are cached by registry, repository and credentials until shortly before they expire, so a
pull of many layers logs in once. Tokens are asked for over a connection at least as private as the
registry's own, in bounded time, and nothing here ever logs a secret.
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

from bayplan.images.registry.credentials import Credentials
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
    """One way of logging in that a registry offers."""

    scheme: str
    parameters: dict[str, str]


def parse_challenges(headers: list[str]) -> list[Challenge]:
    """Read every challenge of a response, in order."""
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
    """Whom a connection is to: what credentials belong to."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def origin_of(url: str) -> Origin:
    """Say whom a URL is for; a port that goes without saying is the same as one that is said."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname
    except ValueError:
        raise PullError(f"{url[:200]!r} is not a URL") from None
    if parts.scheme not in _PORTS or not host:
        raise PullError(f"{url[:200]!r} is not a URL of HTTP")
    return Origin(parts.scheme, host, _PORTS[parts.scheme] if port is None else port)


def redirected(url: str, location: str) -> str:
    """Follow a redirect from one URL to the next, if it may be followed."""
    try:
        target = urljoin(url, location)
    except ValueError:
        raise PullError(f"{origin_of(url)} redirects to no URL: refused") from None
    reject_detour(url, target)
    return target


def reject_detour(url: str, target: str, *, in_the_open: bool = False) -> None:
    """Refuse to go where whoever answers at a URL may not send us."""
    here = origin_of(url)
    scheme = target.partition(":")[0].lower()
    downgrade = here.scheme == "https" and scheme == "http"
    if scheme not in _PORTS or (downgrade and not in_the_open):
        raise PullError(f"{here} redirects to {scheme[:20]}: refused")
    there = origin_of(target)
    if "@" in urlsplit(target).netloc:
        raise PullError(f"{here} redirects to {there} with a password in the address: refused")
    if _is_internal(there.host) and not _is_internal(here.host):
        raise PullError(f"{here} redirects to {there}, which is this machine's own: refused")


def _is_internal(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return mapped.is_loopback or mapped.is_link_local or mapped.is_unspecified


_ANSWER_LIMIT = 64 * 1024
_DEFAULT_LIFETIME = 60.0
_EARLY = 5.0
_CACHE_LIMIT = 1000
_CLIENT_ID = "bayplan"


class TokenKey(msgspec.Struct, frozen=True):
    """What a token is good for."""

    origin: Origin
    repository: str
    credentials: Credentials | None


class _Answer(msgspec.Struct):
    token: str = ""
    access_token: str = ""
    expires_in: float = 0.0


Asking = Callable[..., Awaitable[aiohttp.ClientResponse]]
"""Sends one request (a method, a URL, and what aiohttp's sessions take), following no redirect."""


class Tokens:
    """Authorization headers, fetched when a registry asks for them."""

    def __init__(self, ask: Asking, clock: Callable[[], float], patience: float = 120.0) -> None:
        self._ask_once = ask
        self._clock = clock
        self._patience = patience
        self._cache: dict[TokenKey, tuple[str, float]] = {}

    def cached(self, key: TokenKey) -> str | None:
        """Give a header that is still good."""
        header, expires = self._cache.get(key, ("", 0.0))
        return header if expires > self._clock() else None

    async def answer(self, key: TokenKey, challenges: list[Challenge]) -> str:
        """Turn a 401's challenges into a header, and remember it."""
        self._cache.pop(key, None)
        for challenge in challenges:
            if challenge.scheme == "bearer":
                return await self._bearer(key, challenge)
            if challenge.scheme == "basic" and key.credentials and key.credentials.username:
                return self._keep(key, key.credentials.basic(), float("inf"))
        raise AuthenticationError(f"{key.origin} wants credentials for {key.repository}")

    async def _bearer(self, key: TokenKey, challenge: Challenge) -> str:
        if key.credentials and key.credentials.registry_token:
            return self._keep(key, f"Bearer {key.credentials.registry_token}", float("inf"))
        realm = challenge.parameters.get("realm", "")
        self._check_realm(key, realm)
        answer = await self._ask(key, realm, challenge.parameters)
        token = answer.token or answer.access_token
        if not token or not token.isprintable():
            raise AuthenticationError(
                f"{urlsplit(realm).netloc} gave no token for {key.repository}"
            )
        lifetime = answer.expires_in or _DEFAULT_LIFETIME
        return self._keep(key, f"Bearer {token}", self._clock() + lifetime - _EARLY)

    def _check_realm(self, key: TokenKey, realm: str) -> None:
        try:
            reject_detour(f"{key.origin.scheme}://{key.origin}", realm)
        except PullError as error:
            raise AuthenticationError(f"for a token, {error}") from None

    async def _ask(self, key: TokenKey, realm: str, parameters: dict[str, str]) -> _Answer:
        fields = {"scope": parameters.get("scope") or f"repository:{key.repository}:pull"}
        if "service" in parameters:
            fields["service"] = parameters["service"]
        try:
            async with asyncio.timeout(self._patience):
                async with await self._request(realm, fields, key.credentials) as response:
                    return await self._read(response, realm)
        except (aiohttp.ClientError, TimeoutError) as error:
            place = urlsplit(realm).netloc
            raise TransientError(f"token server {place}: {type(error).__name__}") from error

    async def _request(
        self, realm: str, fields: dict[str, str], credentials: Credentials | None
    ) -> aiohttp.ClientResponse:
        if credentials and credentials.identity_token:
            form = {
                **fields,
                "grant_type": "refresh_token",
                "client_id": _CLIENT_ID,
                "refresh_token": credentials.identity_token,
            }
            return await self._ask_once("POST", URL(realm), data=form)
        headers = {}
        if credentials and credentials.username:
            headers["Authorization"] = credentials.basic()
            fields = {**fields, "account": credentials.username}
        return await self._ask_once("GET", URL(realm), params=fields, headers=headers)

    async def _read(self, response: aiohttp.ClientResponse, realm: str) -> _Answer:
        place = urlsplit(realm).netloc
        if response.status in RETRIED_STATUSES:
            raise TransientError(f"token server {place} answers {response.status}")
        if response.status != 200:
            raise AuthenticationError(f"token server {place} refuses us: {response.status}")
        body = await response.content.read(_ANSWER_LIMIT)
        while len(body) < _ANSWER_LIMIT and (more := await response.content.read(_ANSWER_LIMIT)):
            body += more
        try:
            return msgspec.json.decode(body, type=_Answer)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise AuthenticationError(f"token server {place} answers no JSON") from None

    def _keep(self, key: TokenKey, header: str, expires: float) -> str:
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
        self._cache[key] = (header, expires)
        return header
