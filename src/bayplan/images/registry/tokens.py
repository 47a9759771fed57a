"""Answering a registry's 401: Basic credentials, or a token from the server it names.

Headers are cached by registry, repository and credentials until shortly before they expire, so a
pull of many layers logs in once. Tokens are asked for over a connection at least as private as the
registry's own, and nothing here ever logs a secret.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp
import msgspec

from bayplan.images.registry.challenges import Challenge
from bayplan.images.registry.credentials import Credentials
from bayplan.images.registry.errors import AuthenticationError
from bayplan.images.registry.retry import RETRIED_STATUSES, TransientError

_ANSWER_LIMIT = 64 * 1024
_DEFAULT_LIFETIME = 60.0
_EARLY = 5.0
_CACHE_LIMIT = 1000
_CLIENT_ID = "bayplan"


class TokenKey(msgspec.Struct, frozen=True):
    """What a token is good for."""

    authority: str
    repository: str
    credentials: Credentials | None


class _Answer(msgspec.Struct):
    token: str = ""
    access_token: str = ""
    expires_in: float = 0.0


class Tokens:
    """Authorization headers, fetched when a registry asks for them."""

    def __init__(self, session: aiohttp.ClientSession, clock: Callable[[], float]) -> None:
        self._session = session
        self._clock = clock
        self._cache: dict[TokenKey, tuple[str, float]] = {}

    def cached(self, key: TokenKey) -> str | None:
        """Give a header that is still good."""
        header, expires = self._cache.get(key, ("", 0.0))
        return header if expires > self._clock() else None

    async def answer(self, key: TokenKey, challenges: list[Challenge], *, private: bool) -> str:
        """Turn a 401's challenges into a header, and remember it."""
        self._cache.pop(key, None)
        for challenge in challenges:
            if challenge.scheme == "bearer":
                return await self._bearer(key, challenge, private=private)
            if challenge.scheme == "basic" and key.credentials and key.credentials.username:
                return self._keep(key, key.credentials.basic(), float("inf"))
        raise AuthenticationError(f"{key.authority} wants credentials for {key.repository}")

    async def _bearer(self, key: TokenKey, challenge: Challenge, *, private: bool) -> str:
        if key.credentials and key.credentials.registry_token:
            return self._keep(key, f"Bearer {key.credentials.registry_token}", float("inf"))
        realm = challenge.parameters.get("realm", "")
        self._check_realm(key, realm, private=private)
        answer = await self._ask(key, realm, challenge.parameters)
        token = answer.token or answer.access_token
        if not token or not token.isprintable():
            raise AuthenticationError(
                f"{urlsplit(realm).netloc} gave no token for {key.repository}"
            )
        lifetime = answer.expires_in or _DEFAULT_LIFETIME
        return self._keep(key, f"Bearer {token}", self._clock() + lifetime - _EARLY)

    def _check_realm(self, key: TokenKey, realm: str, *, private: bool) -> None:
        allowed = {"https"} if private else {"https", "http"}
        if urlsplit(realm).scheme not in allowed:
            raise AuthenticationError(f"{key.authority} sends for a token to {realm!r}: refused")

    async def _ask(self, key: TokenKey, realm: str, parameters: dict[str, str]) -> _Answer:
        fields = {"scope": parameters.get("scope") or f"repository:{key.repository}:pull"}
        if "service" in parameters:
            fields["service"] = parameters["service"]
        try:
            async with self._request(realm, fields, key.credentials) as response:
                return await self._read(response, realm)
        except (aiohttp.ClientError, TimeoutError) as error:
            place = urlsplit(realm).netloc
            raise TransientError(f"token server {place}: {type(error).__name__}") from error

    def _request(
        self, realm: str, fields: dict[str, str], credentials: Credentials | None
    ) -> aiohttp.client._RequestContextManager:
        if credentials and credentials.identity_token:
            form = {
                **fields,
                "grant_type": "refresh_token",
                "client_id": _CLIENT_ID,
                "refresh_token": credentials.identity_token,
            }
            return self._session.post(realm, data=form, allow_redirects=False)
        headers = {}
        if credentials and credentials.username:
            headers["Authorization"] = credentials.basic()
            fields = {**fields, "account": credentials.username}
        return self._session.get(realm, params=fields, headers=headers, allow_redirects=False)

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
        except (msgspec.MsgspecError, UnicodeDecodeError):
            raise AuthenticationError(f"token server {place} answers no JSON") from None

    def _keep(self, key: TokenKey, header: str, expires: float) -> str:
        if len(self._cache) >= _CACHE_LIMIT:
            self._cache.clear()
        self._cache[key] = (header, expires)
        return header
