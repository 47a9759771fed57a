"""Credential plugins: when one is asked, what it is asked, and for how long its answer is good.

The program is found by its name in the directory of plugins, gets its arguments and variables, has
a minute and may print a megabyte. Nothing of what it answers is ever put into words: an answer that
cannot be read may hold a password all the same.

A plugin says itself for what its answer is good: the image, its registry, or everything (Global),
and how long. With `tokenAttributes` it is asked on behalf of the pod's service account, and what it
answers is for that account alone. Who asks for the same at the same time waits for one answer.

A plugin that fails, hangs or answers nonsense is reported and passed over, and the pull goes on
with what the others give, as the kubelet does it.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import msgspec

from bayplan.base.clock import Clock
from bayplan.base.durations import DurationError, parse_duration
from bayplan.client.programs import Program, ProgramError
from bayplan.images.credentials.keyring import (
    Credential,
    PodKeyring,
    ServiceAccountSource,
    credentials_for,
)
from bayplan.images.credentials.providers.config import (
    ProviderConfig,
    ProviderSettings,
    TokenAttributes,
    matches,
)
from bayplan.images.registry.credentials import Keyring
from bayplan.images.runtime.objects import PodIdentity, RegistryAuth
from bayplan.kube.imagereferences import parse_image
from bayplan.kube.secrets import ServiceAccount

TIMEOUT = 60.0


class ProviderError(Exception):
    """A plugin that gave nothing that can be used; says which, and why."""


class _Request(msgspec.Struct, rename="camel", omit_defaults=True):
    api_version: str
    kind: str
    image: str
    service_account_token: str = ""
    service_account_annotations: dict[str, str] = {}


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """A name and a password for a registry."""

    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "Login(…)"


class Response(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What a plugin answers."""

    api_version: str
    kind: Literal["CredentialProviderResponse"]
    cache_key_type: str = ""
    cache_duration: str | None = None
    auth: dict[str, Login] | None = None

    @property
    def cache_seconds(self) -> float | None:
        """How long it says it is good; None if it does not say."""
        return None if self.cache_duration is None else parse_duration(self.cache_duration)


@dataclass(frozen=True, slots=True)
class Identity:
    """The service account on whose behalf a plugin is asked."""

    token: str = field(default="", repr=False)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plugin:
    """One program of the directory of plugins."""

    settings: ProviderSettings
    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    timeout: float = TIMEOUT

    async def ask(self, image: str, identity: Identity) -> Response:
        """Ask for credentials for an image."""
        settings = self.settings
        own = {variable.name: variable.value for variable in settings.env}
        environment = {**self.environment, **own}
        command = str(self.folder / settings.name)
        program = Program(command, settings.args, environment, self.timeout)
        request = _Request(
            settings.api_version,
            "CredentialProviderRequest",
            image,
            identity.token,
            dict(identity.annotations),
        )
        try:
            return self._read(await program.run(msgspec.json.encode(request)))
        except ProgramError as error:
            raise self._error(str(error)) from None

    def _read(self, output: bytes) -> Response:
        try:
            response = msgspec.json.decode(output, type=Response)
            _ = response.cache_seconds
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, DurationError):
            raise self._error("the answer is not a CredentialProviderResponse") from None
        if response.api_version != self.settings.api_version:
            raise self._error("answered another version than it was asked in")
        return response

    def _error(self, problem: str) -> ProviderError:
        return ProviderError(f"credential provider {self.settings.name}: {problem}")


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


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Providers:
    """The plugins of a node, in order."""

    providers: Sequence[Provider] = ()

    async def credentials(self, image: str, asker: Asker) -> list[Credential]:
        """What they give for an image, most specific first."""
        keyring: PodKeyring = Keyring()
        name = str(parse_image(image).repository)
        for provider in self.providers:
            keyring += await self._of(provider, name, asker)
        return credentials_for(keyring, image)

    async def _of(self, provider: Provider, name: str, asker: Asker) -> PodKeyring:
        try:
            return await provider.keyring(name, asker)
        except ProviderError as error:
            log.warning("no credentials for %s: %s", name, error)
            if provider.metrics is not None:
                provider.metrics.plugin_failed(provider.settings.name)
            return Keyring()


def providers_of(
    config: ProviderConfig,
    folder: Path,
    clock: Clock,
    accounts: ServiceAccounts | None = None,
    metrics: PluginMetrics | None = None,
) -> Providers:
    """The plugins that a configuration names."""
    return Providers(
        [
            Provider(Plugin(settings, folder), clock, accounts, metrics)
            for settings in config.providers
        ]
    )
