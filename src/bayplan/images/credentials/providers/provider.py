"""When a plugin is asked, and for how long its answer is good.

A plugin says itself for what its answer is good: the image, its registry, or everything (Global),
and how long. With `tokenAttributes` it is asked on behalf of the pod's service account, and what it
answers is for that account alone. Who asks for the same at the same time waits for one answer.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from bayplan.base.clock import Clock
from bayplan.images.credentials.keyring import Credential, PodKeyring, ServiceAccountSource
from bayplan.images.credentials.providers.matching import matches
from bayplan.images.credentials.providers.plugin import (
    Identity,
    Login,
    Plugin,
    ProviderError,
    Response,
)
from bayplan.images.credentials.providers.settings import ProviderSettings, TokenAttributes
from bayplan.images.registry.credentials import Keyring
from bayplan.images.runtime.objects import PodIdentity, RegistryAuth
from bayplan.kube.secrets import ServiceAccount

GLOBAL = "<global>"
_TOKEN_CACHE = "Token"  # noqa: S105 - a kind of caching
_TOKEN_SHARE = 0.8  # of a token's time, for which it is used
_Kept = TypeVar("_Kept")


class TokenUnavailableError(Exception):
    """A service account, or its token, cannot be had."""


@dataclass(frozen=True, slots=True)
class Token:
    """A service account's token, and how long it is good."""

    text: str = field(repr=False)
    seconds: float


class ServiceAccounts(Protocol):
    """What a plugin with tokens needs of a cluster."""

    async def service_account(self, namespace: str, name: str) -> ServiceAccount:
        """The service account; TokenUnavailableError if it cannot be had."""
        ...

    async def token(self, account: ServiceAccount, audience: str, pod: PodIdentity) -> Token:
        """A token of it for an audience, bound to a pod; TokenUnavailableError if there is none."""
        ...


class PluginMetrics(Protocol):
    """What is counted of plugins."""

    def plugin_ran(self, name: str, seconds: float) -> None:
        """A plugin was asked, and it took that long."""
        ...

    def plugin_failed(self, name: str) -> None:
        """A plugin gave nothing that can be used."""
        ...


@dataclass(frozen=True, slots=True)
class Asker:
    """The pod for which credentials are wanted."""

    pod: PodIdentity
    service_account: str = ""


@dataclass(frozen=True, slots=True)
class _Account:
    """A service account as a plugin is told of it, and as answers are kept by it."""

    identity: Identity = field(default_factory=Identity)
    source: ServiceAccountSource | None = None
    key: Hashable = ()


@dataclass(slots=True)
class Provider:
    """One plugin with its answers."""

    plugin: Plugin
    clock: Clock
    accounts: ServiceAccounts | None = None
    metrics: PluginMetrics | None = None
    _tokens: dict[Hashable, tuple[float, str]] = field(default_factory=dict)
    _answers: dict[Hashable, tuple[float, dict[str, Login]]] = field(default_factory=dict)
    _asking: dict[Hashable, asyncio.Task[Response]] = field(default_factory=dict)

    @property
    def settings(self) -> ProviderSettings:
        """What the operator says of it."""
        return self.plugin.settings

    async def keyring(self, image: str, asker: Asker) -> PodKeyring:
        """The credentials for an image; ProviderError if the plugin does not give them."""
        if not any(matches(pattern, image) for pattern in self.settings.match_images):
            return Keyring()
        account = await self._account(asker)
        if account is None:
            return Keyring()
        logins = self._cached(image, account)
        if logins is None:
            logins = self._keep(image, account, await self._ask_once(image, account))
        return Keyring.of(
            (key, Credential(RegistryAuth(login.username, login.password), account.source))
            for key, login in logins.items()
        )

    # --- on whose behalf ---

    async def _account(self, asker: Asker) -> _Account | None:
        """The account to ask for; None if the plugin is not to be asked at all."""
        wish = self.settings.token_attributes
        if wish is None:
            return _Account()
        if not asker.service_account:
            return None if wish.require_service_account else _Account()
        if self.accounts is None:
            raise self._error("there is no cluster to ask for a service account's token")
        try:
            return await self._of_service_account(wish, asker, self.accounts)
        except TokenUnavailableError as error:
            raise self._error(str(error)) from None

    async def _of_service_account(
        self, wish: TokenAttributes, asker: Asker, accounts: ServiceAccounts
    ) -> _Account | None:
        account = await accounts.service_account(asker.pod.namespace, asker.service_account)
        meta = account.metadata
        required = wish.required_service_account_annotation_keys
        if any(key not in meta.annotations for key in required):
            return None  # the account has not opted in
        wanted = (*required, *wish.optional_service_account_annotation_keys)
        told = {key: meta.annotations[key] for key in wanted if key in meta.annotations}
        audience = wish.service_account_token_audience
        source = ServiceAccountSource(meta.namespace, meta.name, meta.uid)
        token = await self._token(account, audience, asker.pod, accounts)
        digest = hashlib.sha256(token.encode()).hexdigest()
        by_token = digest if wish.cache_type == _TOKEN_CACHE else ""
        key = (source, tuple(sorted(told.items())), by_token)
        return _Account(Identity(token, told), source, key)

    async def _token(
        self, account: ServiceAccount, audience: str, pod: PodIdentity, accounts: ServiceAccounts
    ) -> str:
        """The pod's token; a new one once most of the old one's time is over."""
        now = self.clock.monotonic()
        _forget(self._tokens, now)
        key = (account.metadata.uid, audience, pod.uid)
        if key not in self._tokens:
            token = await accounts.token(account, audience, pod)
            self._tokens[key] = (now + token.seconds * _TOKEN_SHARE, token.text)
        return self._tokens[key][1]

    # --- its answers ---

    async def _ask_once(self, image: str, account: _Account) -> Response:
        key = (image, account.identity.token, tuple(sorted(account.identity.annotations.items())))
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.ensure_future(self._ask(image, account.identity))
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        # Who no longer waits does not end it for the others; it ends by itself in time.
        return await asyncio.shield(task)

    async def _ask(self, image: str, identity: Identity) -> Response:
        began = self.clock.monotonic()
        try:
            return await self.plugin.ask(image, identity)
        finally:
            if self.metrics is not None:
                self.metrics.plugin_ran(self.settings.name, self.clock.monotonic() - began)

    def _cached(self, image: str, account: _Account) -> dict[str, Login] | None:
        _forget(self._answers, self.clock.monotonic())
        for kept_by in (image, image.partition("/")[0], GLOBAL):
            if (found := self._answers.get((kept_by, account.key))) is not None:
                return found[1]
        return None

    def _keep(self, image: str, account: _Account, response: Response) -> dict[str, Login]:
        logins = response.auth or {}
        self._check_echo(account, logins)
        kept_by = {"Image": image, "Registry": image.partition("/")[0], "Global": GLOBAL}
        if response.cache_key_type not in kept_by:
            raise self._error(f"cacheKeyType is none of {', '.join(kept_by)}")
        said = response.cache_seconds
        seconds = self.settings.cache_seconds if said is None else said
        if seconds > 0:
            key = (kept_by[response.cache_key_type], account.key)
            self._answers[key] = (self.clock.monotonic() + seconds, logins)
        return logins

    def _check_echo(self, account: _Account, logins: dict[str, Login]) -> None:
        """A token that is handed through is one pod's; kept for an account it would be others'."""
        wish, token = self.settings.token_attributes, account.identity.token
        shared = wish is not None and wish.cache_type != _TOKEN_CACHE
        if token and shared and any(login.password == token for login in logins.values()):
            raise self._error("gave the token back as a password, which only cacheType Token may")

    def _error(self, problem: str) -> ProviderError:
        return ProviderError(f"credential provider {self.settings.name}: {problem}")


def _forget(kept: dict[Hashable, tuple[float, _Kept]], now: float) -> None:
    """Drop what is good no more."""
    for key in [key for key, (good_until, _) in kept.items() if good_until < now]:
        del kept[key]
