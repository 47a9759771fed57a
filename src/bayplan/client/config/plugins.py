"""Credentials of exec plugins and of the older auth providers.

An exec plugin reads the variable KUBERNETES_EXEC_INFO and prints an ExecCredential: a token, a
client certificate, or both, and their expiry. They are used until then or until the server answers
401. One program (`bayplan.client.programs`) runs at a time for all requests that wait for it.

Auth providers are left to kubernetes_asyncio, which is imported only when a kubeconfig names one.
Refreshed tokens are not written to the kubeconfig, which belongs to its owner.
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


class AuthProviderToken(Anonymous):
    """A token that kubernetes_asyncio gets and refreshes."""

    def __init__(self, provider: AuthProvider) -> None:
        if provider.name not in KNOWN:
            raise ConfigError(f"auth-provider {provider.name!r} is not one of {', '.join(KNOWN)}")
        from kubernetes_asyncio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

        self._name = provider.name
        self._loader = KubeConfigLoader(_as_kubeconfig(provider))
        self._lock = asyncio.Lock()

    async def authorization(self) -> str | None:
        """Return the header of the token, refreshed by the library if it has expired."""
        async with self._lock:
            try:
                if self._name == "gcp":
                    header = await self._loader.load_gcp_token()
                else:
                    header = await self._loader._load_oid_token()  # noqa: SLF001
            except Exception:  # noqa: BLE001 # its error may quote the token
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
    """The credentials that an exec plugin returns."""

    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: datetime | None = None


class ExecCredential(msgspec.Struct, rename="camel"):
    """The whole output of an exec plugin."""

    api_version: str
    kind: str
    status: ExecStatus


@dataclass(frozen=True, slots=True)
class ExecPlugin:
    """An exec plugin, the directory of its relative path, and the cluster's fields for it."""

    settings: ExecSettings
    directory: Path
    cluster: Mapping[str, object]
    environment: Mapping[str, str]
    timeout: float = 60.0

    async def run(self) -> ExecStatus:
        """Run the program once."""
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
        """Return the command: with a slash relative to the kubeconfig, else found on the PATH."""
        command = self.settings.command
        return str(self.directory / command) if os.sep in command else command

    def _environment(self) -> dict[str, str]:
        spec: dict[str, object] = {"interactive": False}
        if self.settings.provide_cluster_info:
            spec["cluster"] = dict(self.cluster)
        info = {"apiVersion": self.settings.api_version, "kind": "ExecCredential", "spec": spec}
        own = {variable.name: variable.value for variable in self.settings.env or ()}
        exec_info = {"KUBERNETES_EXEC_INFO": msgspec.json.encode(info).decode()}
        return {**self.environment, **own, **exec_info}

    def _read(self, output: bytes) -> ExecStatus:
        try:
            answer = msgspec.json.decode(output, type=ExecCredential)
        except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
            raise ConfigError(f"{self._name}: the output is not an ExecCredential") from None
        if answer.api_version != self.settings.api_version:
            raise ConfigError(f"{self._name}: the output is of another version than requested")
        status = answer.status
        if bool(status.client_certificate_data) != bool(status.client_key_data):
            raise ConfigError(
                f"{self._name}: returned a client certificate without key, or a key alone"
            )
        if not status.token and not status.client_key_data:
            raise ConfigError(f"{self._name}: returned no credential")
        return status


class ExecCredentials:
    """The credentials that an exec plugin returned last, until they expire."""

    def __init__(self, plugin: ExecPlugin, clock: Clock) -> None:
        if plugin.settings.api_version not in VERSIONS:
            raise ConfigError(
                f"exec plugin version {plugin.settings.api_version!r} is not supported"
            )
        self._plugin = plugin
        self._clock = clock
        self._credential: ExecStatus | None = None
        self._running = asyncio.Lock()

    async def authorization(self) -> str | None:
        """Return the header of the plugin's token; run it again if the last one has expired."""
        async with self._running:
            if self._credential is None or self._is_expired(self._credential):
                self._credential = await self._plugin.run()
            token = self._credential.token
        return f"Bearer {checked_token(token, 'the exec plugin token')}" if token else None

    def certificate(self) -> ClientCertificate | None:
        """Return the plugin's client certificate, if there is one."""
        credential = self._credential
        if credential is None or not credential.client_key_data:
            return None
        certificate, key = credential.client_certificate_data, credential.client_key_data
        return ClientCertificate(certificate.encode(), key.encode())

    def reject(self) -> bool:
        """Run the plugin again before the next request."""
        self._credential = None
        return True

    def _is_expired(self, credential: ExecStatus) -> bool:
        if (expiry := credential.expiration_timestamp) is None:
            return False
        expiry = expiry if expiry.tzinfo else expiry.replace(tzinfo=UTC)
        return self._clock.now() + EARLY >= expiry
