"""Credentials from programs, as cloud providers hand them out, and from older auth providers.

Their refresh dances are kubernetes_asyncio's to know; it is imported only when a kubeconfig names
one. Refreshed tokens are used, not written back: the kubeconfig is its owner's file.

The program gets what it should know in the variable KUBERNETES_EXEC_INFO and prints an
ExecCredential: a token, a client certificate, or both, and until when they are good. We keep them
until then or until the server says 401, and run one program (`bayplan.client.programs`) at a time
however many requests wait for it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from bayplan.base.clock import Clock
from bayplan.client.config.access import Anonymous, ClientCertificate, checked_token
from bayplan.client.config.kubeconfig import AuthProvider, ExecSettings
from bayplan.client.errors import ConfigError
from bayplan.client.programs import NotStartedError, Program, ProgramError

KNOWN = ("gcp", "oidc")


class ProvidedToken(Anonymous):
    """A token that kubernetes_asyncio gets and refreshes."""

    def __init__(self, provider: AuthProvider) -> None:
        if provider.name not in KNOWN:
            raise ConfigError(f"auth-provider {provider.name!r} is not one of {', '.join(KNOWN)}")
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

        self._name = provider.name
        self._loader = KubeConfigLoader(_as_kubeconfig(provider))
        self._asking = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The token, refreshed if the library finds that it has run out."""
        async with self._asking:
            try:
                if self._name == "gcp":
                    header = await self._loader.load_gcp_token()
                else:
                    header = await self._loader._load_oid_token()  # noqa: SLF001
            except Exception:  # noqa: BLE001 # whatever it raises may quote the token
                raise ConfigError(f"auth-provider {self._name}: no valid token") from None
        token = str(header).removeprefix("Bearer ")
        return f"Bearer {checked_token(token, f'the token of auth-provider {self._name}')}"


def _as_kubeconfig(provider: AuthProvider) -> dict[str, object]:
    settings = {"name": provider.name, "config": dict(provider.config or {})}
    return {
        "current-context": "only",
        "contexts": [{"name": "only", "context": {"cluster": "only", "user": "only"}}],
        "clusters": [{"name": "only", "cluster": {"server": "https://only.invalid"}}],
        "users": [{"name": "only", "user": {"auth-provider": settings}}],
    }


EARLY = timedelta(seconds=10)
VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class ExecStatus(msgspec.Struct, rename="camel"):
    """What the plugin gives."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, rename="camel"):
    """The plugin's whole answer."""

    api_version: str
    kind: str
    status: ExecStatus


@dataclass(frozen=True, slots=True)
class Plugin:
    """A program, where its relative path starts from, and what it may know of the cluster."""

    settings: ExecSettings
    home: Path
    cluster: Mapping[str, object]
    environment: Mapping[str, str]
    timeout: float = 60.0

    async def run(self) -> ExecStatus:
        """Run it once."""
        arguments, environment = self.settings.args or [], self._environment()
        program = Program(self._command(), arguments, environment, self.timeout)
        try:
            return self._read(await program.run())
        except ProgramError as error:
            hint = self.settings.install_hint
            missing = f" ({hint})" if hint and isinstance(error, NotStartedError) else ""
            raise ConfigError(f"{self._name}: {error}{missing}") from None

    @property
    def _name(self) -> str:
        return f"exec plugin {self.settings.command}"

    def _command(self) -> str:
        """A path with a slash in it is relative to the kubeconfig; a bare name is on the PATH."""
        command = self.settings.command
        return str(self.home / command) if os.sep in command else command

    def _environment(self) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": False}
        if self.settings.provide_cluster_info:
            spec["cluster"] = dict(self.cluster)
        info = {"apiVersion": self.settings.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in self.settings.env or ()}
        told = {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        return {**self.environment, **own, **told}

    def _read(self, output: bytes) -> ExecStatus:
        try:
            answer = msgspec.json.decode(output, type=ExecCredential)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise ConfigError(f"{self._name}: the answer is not an ExecCredential") from None
        if answer.api_version != self.settings.api_version:
            raise ConfigError(f"{self._name}: answered another version than it was asked in")
        status = answer.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise ConfigError(f"{self._name}: gave half of a client certificate")
        if not status.token and not status.client_key_data:
            raise ConfigError(f"{self._name}: gave no credential")
        return status


class ExecCredentials:
    """What the plugin gave last, for as long as it is good."""

    def __init__(self, plugin: Plugin, clock: Clock) -> None:
        if plugin.settings.api_version not in VERSIONS:
            raise ConfigError(f"exec plugin version {plugin.settings.api_version!r} is not known")
        self._plugin = plugin
        self._clock = clock
        self._given: ExecStatus | None = None
        self._running = asyncio.Lock()

    async def authorization(self) -> str | None:
        """The plugin's token, from a new run if the last one is no longer good."""
        async with self._running:
            if self._given is None or self._expired(self._given):
                self._given = await self._plugin.run()
            token = self._given.token
        return f"Bearer {checked_token(token, 'the exec plugin token')}" if token else None

    def certificate(self) -> ClientCertificate | None:
        """The plugin's certificate, if it gave one."""
        given = self._given
        if given is None or not given.client_key_data:
            return None
        certificate, key = given.client_certificate_data, given.client_key_data
        return ClientCertificate(certificate.encode(), key.encode())

    def reject(self) -> bool:
        """Run the plugin again before the next request."""
        self._given = None
        return True

    def _expired(self, given: ExecStatus) -> bool:
        if (expiry := given.expiration_timestamp) is None:
            return False
        expiry = expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)
        return self._clock.now() + EARLY >= expiry
