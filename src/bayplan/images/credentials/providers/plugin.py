"""Speaking with one plugin: a CredentialProviderRequest to it, a CredentialProviderResponse back.

The program is found by its name in the directory of plugins, gets its arguments and variables, has
a minute and may print a megabyte. Nothing of what it answers is ever put into words: an answer that
cannot be read may hold a password all the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from bayplan.base.durations import DurationError, parse_duration
from bayplan.client.programs import Program, ProgramError
from bayplan.images.credentials.providers.settings import ProviderSettings

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
