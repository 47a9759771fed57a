"""Answering a registry's 401: Basic credentials, or a token from the server it names.

Headers are cached by registry, repository and credentials until shortly before they expire, so a
pull of many layers logs in once. Tokens are asked for over a connection at least as private as the
registry's own, in bounded time, and nothing here ever logs a secret.
"""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

import aiohttp
import msgspec
from yarl import URL

from bayplan.images.registry.challenges import Challenge
from bayplan.images.registry.credentials import Credentials
from bayplan.images.registry.errors import AuthenticationError, PullError
from bayplan.images.registry.origins import Origin, reject_detour
from bayplan.images.registry.retry import RETRIED_STATUSES, TransientError

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
