"""Credentials for registries: Docker's configuration files and Kubernetes' pull secrets.

Both are JSON of the same form: entries by registry, where a key may have a scheme, a path prefix
and `*` in the host's labels. `lookup` returns the credentials for a repository, the longest key
first, in the order in which they are tried. Passwords never appear in a `repr`.
"""

import base64
import binascii
import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from bayplan.kube.imagereferences import DEFAULT_REGISTRY

_SIZE_LIMIT = 1024 * 1024
_T = TypeVar("_T")


class RegistryCredentials(msgspec.Struct, frozen=True):
    """Credentials for a registry."""

    username: str = ""
    password: str = ""
    identity_token: str = ""  # exchanged for access tokens
    registry_token: str = ""  # sent as it is

    def __bool__(self) -> bool:
        return bool(self.username or self.identity_token or self.registry_token)

    def __repr__(self) -> str:
        return f"RegistryCredentials(username={self.username!r}, …)"

    __str__ = __repr__

    def basic(self) -> str:
        """Return the value of a Basic authorization header."""
        joined = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(joined).decode()}"


class DockerEntry(msgspec.Struct, frozen=True):
    """One registry's entry in a Docker configuration."""

    username: str = ""
    password: str = ""
    auth: str = ""
    identitytoken: str = ""
    registrytoken: str = ""

    def credentials(self) -> RegistryCredentials:
        """Decode the entry."""
        username, password = self.username, self.password
        if self.auth:
            username, password = decode_auth(self.auth)
        return RegistryCredentials(username, password, self.identitytoken, self.registrytoken)

    def __repr__(self) -> str:
        return "DockerEntry(…)"


class _DockerConfig(msgspec.Struct):
    auths: dict[str, DockerEntry] = {}


@dataclass(frozen=True)
class Keyring(Generic[_T]):
    """Credentials by registry key, in the order of their files."""

    entries: tuple[tuple[tuple[str, str], _T], ...] = ()

    @classmethod
    def of(cls, entries: Iterable[tuple[str, _T]]) -> "Keyring[_T]":
        """Return the keyring of one file's entries."""
        return cls(tuple((split_key(key), found) for key, found in entries))

    def __add__(self, other: "Keyring[_T]") -> "Keyring[_T]":
        return Keyring(self.entries + other.entries)

    def lookup(self, host: str, path: str) -> list[_T]:
        """Return the credentials to try for a repository, the most specific first."""
        matching = [(key, found) for key, found in self.entries if key_matches(key, host, path)]
        # `quay.io/team` before `quay.io`; the sort is stable for keys of the same path.
        matching.sort(key=lambda hit: len(hit[0][1]), reverse=True)
        return list(dict.fromkeys(found for _, found in matching))


def decode_auth(auth: str) -> tuple[str, str]:
    """Split base64 of `username:password`."""
    try:
        # Some tools leave the padding out.
        padded = auth.strip() + "=" * (-len(auth.strip()) % 4)
        text = base64.b64decode(padded, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise ValueError("a registry's auth is not base64 of username:password") from None
    username, colon, password = text.partition(":")
    if not colon:
        raise ValueError("a registry's auth is not base64 of username:password")
    return username, password.rstrip("\0")


def read_docker_config(data: bytes, place: str) -> list[tuple[str, RegistryCredentials]]:
    """Read `.dockerconfigjson` or Docker's config.json: entries under `auths`."""
    return _entries(_decode(data, _DockerConfig, place).auths, place)


def read_legacy_docker_config(data: bytes, place: str) -> list[tuple[str, RegistryCredentials]]:
    """Read `.dockercfg`: the entries themselves."""
    return _entries(_decode(data, dict[str, DockerEntry], place), place)


def _decode(data: bytes, kind: type[_T], place: str) -> _T:
    if len(data) > _SIZE_LIMIT:
        raise ValueError(f"{place}: a Docker configuration of more than {_SIZE_LIMIT} bytes")
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # The decoder's message may quote the content, which is secret.
        raise ValueError(f"{place}: not a Docker configuration in JSON") from None


def _entries(auths: dict[str, DockerEntry], place: str) -> list[tuple[str, RegistryCredentials]]:
    found = []
    for key, entry in auths.items():
        try:
            found.append((key, entry.credentials()))
        except ValueError as error:
            raise ValueError(f"{place}: entry {key!r}: {error}") from None
    return found


def split_key(key: str) -> tuple[str, str]:
    """Split an entry's key into host and path, without scheme and API version."""
    host, _, path = key.partition("://")[2].partition("/") if "://" in key else key.partition("/")
    if host in {"index.docker.io", "registry-1.docker.io"}:
        host = DEFAULT_REGISTRY
    # Docker's key for Docker Hub ends in an API version, which is not a repository's path.
    return host, "" if path.strip("/") in {"v1", "v2"} else path.strip("/")


def key_matches(key: tuple[str, str], host: str, path: str) -> bool:
    """Return whether an entry matches a repository."""
    wanted, prefix = key
    if prefix and path != prefix and not path.startswith(f"{prefix}/"):
        return False
    pattern, labels = wanted.split("."), host.split(".")
    return len(pattern) == len(labels) and all(
        fnmatch.fnmatchcase(label, part) for part, label in zip(pattern, labels, strict=True)
    )
