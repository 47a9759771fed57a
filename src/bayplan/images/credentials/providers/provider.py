"""Credential provider plugins: when one runs, its request, and how long its response is cached.

The program is found by its name in the directory of plugins, has a minute and may print a megabyte.
Its output is never quoted: even a malformed one may hold a password.

A response has its cache key (the image, its registry, or everything: Global) and duration. With
`tokenAttributes` the plugin runs with a token of the pod's service account, and its response is for
that account alone. Equal requests at the same time share one run.

A plugin that fails, hangs or returns a malformed response is reported and skipped, and the pull
goes on with the credentials of the others, as in the kubelet.
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
    """A plugin returned no usable credentials."""


class _Request(msgspec.Struct, rename="camel", omit_defaults=True):
    api_version: str
    kind: str
    image: str
    service_account_token: str = ""
    service_account_annotations: dict[str, str] = {}


class AuthConfig(msgspec.Struct, forbid_unknown_fields=True):
    """A username and a password for a registry."""

    username: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return "AuthConfig(…)"


class CredentialProviderResponse(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The response of a plugin."""

    api_version: str
    kind: Literal["CredentialProviderResponse"]
    cache_key_type: str = ""
    cache_duration: str | None = None
    auth: dict[str, AuthConfig] | None = None

    @property
    def cache_seconds(self) -> float | None:
        """The response's cache duration; None if it has none."""
        return None if self.cache_duration is None else parse_duration(self.cache_duration)


@dataclass(frozen=True, slots=True)
class ServiceAccountIdentity:
    """The service account for which a plugin runs."""

    token: str = field(default="", repr=False)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CredentialPlugin:
    """A program of the directory of plugins."""

    settings: ProviderSettings
    folder: Path
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    timeout: float = TIMEOUT

    async def run(self, image: str, identity: ServiceAccountIdentity) -> CredentialProviderResponse:
        """Run the plugin for an image; return its response."""
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

    def _read(self, output: bytes) -> CredentialProviderResponse:
        try:
            response = msgspec.json.decode(output, type=CredentialProviderResponse)
            _ = response.cache_seconds
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError, DurationError):
            raise self._error("the output is not a CredentialProviderResponse") from None
        if response.api_version != self.settings.api_version:
            raise self._error("the output is of another version than requested")
        return response

    def _error(self, problem: str) -> ProviderError:
        return ProviderError(f"credential provider {self.settings.name}: {problem}")


GLOBAL = "<global>"
_TOKEN_CACHE = "Token"  # noqa: S105 - a kind of caching
_TOKEN_SHARE = 0.8  # of a token's lifetime, after which a new one is requested
_Cached = TypeVar("_Cached")


class TokenUnavailableError(Exception):
    """A service account or its token cannot be read."""


@dataclass(frozen=True, slots=True)
class ServiceAccountToken:
    """A service account's token, and its lifetime."""

    text: str = field(repr=False)
    seconds: float


class ServiceAccounts(Protocol):
    """Reads service accounts and requests their tokens."""

    async def service_account(self, namespace: str, name: str) -> ServiceAccount:
        """Return the service account; TokenUnavailableError if it cannot be read."""
        ...

    async def token(
        self, account: ServiceAccount, audience: str, pod: PodIdentity
    ) -> ServiceAccountToken:
        """Request a token for an audience, bound to a pod; may raise TokenUnavailableError."""
        ...


class PluginMetrics(Protocol):
    """Counts runs of plugins."""

    def plugin_ran(self, name: str, seconds: float) -> None:
        """Count a run of a plugin and its duration."""
        ...

    def plugin_failed(self, name: str) -> None:
        """Count a failed run of a plugin."""
        ...


@dataclass(frozen=True, slots=True)
class RequestingPod:
    """The pod for which credentials are requested."""

    pod: PodIdentity
    service_account: str = ""


@dataclass(frozen=True, slots=True)
class _Account:
    """A service account: its identity for the plugin, and its part of the cache key."""

    identity: ServiceAccountIdentity = field(default_factory=ServiceAccountIdentity)
    source: ServiceAccountSource | None = None
    key: Hashable = ()


@dataclass(slots=True)
class CredentialProvider:
    """A plugin with its cached responses."""

    plugin: CredentialPlugin
    clock: Clock
    accounts: ServiceAccounts | None = None
    metrics: PluginMetrics | None = None
    _tokens: dict[Hashable, tuple[float, str]] = field(default_factory=dict)
    _responses: dict[Hashable, tuple[float, dict[str, AuthConfig]]] = field(default_factory=dict)
    _running: dict[Hashable, asyncio.Task[CredentialProviderResponse]] = field(default_factory=dict)

    @property
    def settings(self) -> ProviderSettings:
        """The plugin's configuration."""
        return self.plugin.settings

    async def keyring(self, image: str, requester: RequestingPod) -> PodKeyring:
        """Return the credentials for an image; ProviderError if the plugin fails."""
        if not any(matches(pattern, image) for pattern in self.settings.match_images):
            return Keyring()
        account = await self._account(requester)
        if account is None:
            return Keyring()
        auth = self._cached(image, account)
        if auth is None:
            auth = self._keep(image, account, await self._run_once(image, account))
        return Keyring.of(
            (key, Credential(RegistryAuth(login.username, login.password), account.source))
            for key, login in auth.items()
        )

    # --- service accounts and tokens ---

    async def _account(self, requester: RequestingPod) -> _Account | None:
        """Return the account to run for; None if the plugin does not run for this pod."""
        attributes = self.settings.token_attributes
        if attributes is None:
            return _Account()
        if not requester.service_account:
            return None if attributes.require_service_account else _Account()
        if self.accounts is None:
            raise self._error("a service account's token cannot be requested without a cluster")
        try:
            return await self._of_service_account(attributes, requester, self.accounts)
        except TokenUnavailableError as error:
            raise self._error(str(error)) from None

    async def _of_service_account(
        self, attributes: TokenAttributes, requester: RequestingPod, accounts: ServiceAccounts
    ) -> _Account | None:
        account = await accounts.service_account(requester.pod.namespace, requester.service_account)
        meta = account.metadata
        required = attributes.required_service_account_annotation_keys
        if any(key not in meta.annotations for key in required):
            return None  # the account has not opted in
        wanted = (*required, *attributes.optional_service_account_annotation_keys)
        annotations = {key: meta.annotations[key] for key in wanted if key in meta.annotations}
        audience = attributes.service_account_token_audience
        source = ServiceAccountSource(meta.namespace, meta.name, meta.uid)
        token = await self._token(account, audience, requester.pod, accounts)
        digest = hashlib.sha256(token.encode()).hexdigest()
        by_token = digest if attributes.cache_type == _TOKEN_CACHE else ""
        key = (source, tuple(sorted(annotations.items())), by_token)
        return _Account(ServiceAccountIdentity(token, annotations), source, key)

    async def _token(
        self, account: ServiceAccount, audience: str, pod: PodIdentity, accounts: ServiceAccounts
    ) -> str:
        """Return the pod's token; a new one once most of the old one's lifetime is over."""
        now = self.clock.monotonic()
        _drop_expired(self._tokens, now)
        key = (account.metadata.uid, audience, pod.uid)
        if key not in self._tokens:
            token = await accounts.token(account, audience, pod)
            self._tokens[key] = (now + token.seconds * _TOKEN_SHARE, token.text)
        return self._tokens[key][1]

    # --- responses and their cache ---

    async def _run_once(self, image: str, account: _Account) -> CredentialProviderResponse:
        key = (image, account.identity.token, tuple(sorted(account.identity.annotations.items())))
        task = self._running.get(key)
        if task is None:
            task = self._running[key] = asyncio.ensure_future(self._run(image, account.identity))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        # A cancelled caller does not end it for the others; it has its own time limit.
        return await asyncio.shield(task)

    async def _run(
        self, image: str, identity: ServiceAccountIdentity
    ) -> CredentialProviderResponse:
        began = self.clock.monotonic()
        try:
            return await self.plugin.run(image, identity)
        finally:
            if self.metrics is not None:
                self.metrics.plugin_ran(self.settings.name, self.clock.monotonic() - began)

    def _cached(self, image: str, account: _Account) -> dict[str, AuthConfig] | None:
        _drop_expired(self._responses, self.clock.monotonic())
        for cache_keys in (image, image.partition("/")[0], GLOBAL):
            if (found := self._responses.get((cache_keys, account.key))) is not None:
                return found[1]
        return None

    def _keep(
        self, image: str, account: _Account, response: CredentialProviderResponse
    ) -> dict[str, AuthConfig]:
        auth = response.auth or {}
        self._check_echo(account, auth)
        cache_keys = {"Image": image, "Registry": image.partition("/")[0], "Global": GLOBAL}
        if response.cache_key_type not in cache_keys:
            raise self._error(f"cacheKeyType is none of {', '.join(cache_keys)}")
        duration = response.cache_seconds
        seconds = self.settings.cache_seconds if duration is None else duration
        if seconds > 0:
            key = (cache_keys[response.cache_key_type], account.key)
            self._responses[key] = (self.clock.monotonic() + seconds, auth)
        return auth

    def _check_echo(self, account: _Account, auth: dict[str, AuthConfig]) -> None:
        """Refuse a response with the pod's token as password, which a cache would share."""
        attributes, token = self.settings.token_attributes, account.identity.token
        shared = attributes is not None and attributes.cache_type != _TOKEN_CACHE
        if token and shared and any(login.password == token for login in auth.values()):
            raise self._error("returned the token as a password, which only cacheType Token may")

    def _error(self, problem: str) -> ProviderError:
        return ProviderError(f"credential provider {self.settings.name}: {problem}")


def _drop_expired(kept: dict[Hashable, tuple[float, _Cached]], now: float) -> None:
    """Drop expired entries."""
    for key in [key for key, (expires, _) in kept.items() if expires < now]:
        del kept[key]


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CredentialProviders:
    """The plugins of a node, in order."""

    providers: Sequence[CredentialProvider] = ()

    async def credentials(self, image: str, requester: RequestingPod) -> list[Credential]:
        """Return the plugins' credentials for an image, most specific first."""
        keyring: PodKeyring = Keyring()
        name = str(parse_image(image).repository)
        for provider in self.providers:
            keyring += await self._of(provider, name, requester)
        return credentials_for(keyring, image)

    async def _of(
        self, provider: CredentialProvider, name: str, requester: RequestingPod
    ) -> PodKeyring:
        try:
            return await provider.keyring(name, requester)
        except ProviderError as error:
            log.warning("no credentials from plugin: %s", error, extra={"image": name})
            if provider.metrics is not None:
                provider.metrics.plugin_failed(provider.settings.name)
            return Keyring()


def providers_of(
    config: ProviderConfig,
    folder: Path,
    clock: Clock,
    accounts: ServiceAccounts | None = None,
    metrics: PluginMetrics | None = None,
) -> CredentialProviders:
    """Return the plugins of a configuration."""
    return CredentialProviders(
        [
            CredentialProvider(CredentialPlugin(settings, folder), clock, accounts, metrics)
            for settings in config.providers
        ]
    )
