"""Docker's credential files: `config.json` (with `auths`) and the older `.dockercfg`.

Both map a registry, or a part of one, to a user and a password; `auth` is both in base64 and wins
over the separate fields. Errors name the entry, never what is in it.
"""

from __future__ import annotations

import base64
import binascii
from typing import TypeVar

import msgspec

from bayplan.images.runtime.objects import RegistryAuth

_T = TypeVar("_T")


class InvalidDockerConfigError(ValueError):
    """The text is not a Docker credential file."""


class _Entry(msgspec.Struct):
    username: str = ""
    password: str = ""
    auth: str = ""
    identitytoken: str = ""
    registrytoken: str = ""


class _ConfigJson(msgspec.Struct):
    auths: dict[str, _Entry] = {}


def parse_config_json(content: bytes) -> dict[str, RegistryAuth]:
    """Credentials by registry from a `config.json`."""
    return _credentials(_decode(content, _ConfigJson).auths)


def parse_dockercfg(content: bytes) -> dict[str, RegistryAuth]:
    """Credentials by registry from a `.dockercfg`."""
    return _credentials(_decode(content, dict[str, _Entry]))


def _decode(content: bytes, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # msgspec names the field, not the value, so that no secret leaks into the message.
        raise InvalidDockerConfigError(f"not a Docker credential file: {error}") from None


def _credentials(entries: dict[str, _Entry]) -> dict[str, RegistryAuth]:
    return {registry: _auth(registry, entry) for registry, entry in entries.items()}


def _auth(registry: str, entry: _Entry) -> RegistryAuth:
    username, password = entry.username, entry.password
    if entry.auth:
        username, password = _decode_auth(registry, entry.auth)
    return RegistryAuth(
        username=username,
        password=password,
        identity_token=entry.identitytoken,
        registry_token=entry.registrytoken,
    )


def _decode_auth(registry: str, field: str) -> tuple[str, str]:
    """`auth` is base64 of `user:password`, with or without its padding."""
    padded = field.strip()
    padded += "=" * (-len(padded) % 4)
    try:
        username, colon, password = base64.b64decode(padded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise InvalidDockerConfigError(f"auth of {registry!r} is not base64") from None
    if not colon:
        raise InvalidDockerConfigError(f"auth of {registry!r} is not base64 of user:password")
    return username, password
