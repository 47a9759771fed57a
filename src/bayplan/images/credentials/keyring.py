"""Which credentials fit an image, most specific first.

A key is a registry with or without a path (`quay.io`, `quay.io/team`, `*.example.com`): the host's
parts are globs, the port must be equal, the path must begin the image's path. Every credential
knows the secret it came from; one without a source belongs to the node and so to all its pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import msgspec

from bayplan.images.credentials.dockerconfig import (
    InvalidDockerConfigError,
    parse_config_json,
    parse_dockercfg,
)
from bayplan.images.references import DEFAULT_DOMAIN, parse
from bayplan.images.runtime.objects import RegistryAuth
from bayplan.kube.secrets import DOCKER_CONFIG_JSON_TYPE, DOCKER_CONFIG_TYPE, Secret

_DOCKER_HUB_KEY = "index.docker.io"
_PARSERS = {
    DOCKER_CONFIG_JSON_TYPE: (".dockerconfigjson", parse_config_json),
    DOCKER_CONFIG_TYPE: (".dockercfg", parse_dockercfg),
}


@dataclass(frozen=True, slots=True, order=True)
class SecretSource:
    """Where a credential came from."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Credential:
    """What to say to a registry, and who may say it."""

    auth: RegistryAuth
    source: SecretSource | None = None

    @property
    def hash(self) -> str:
        """A fingerprint that can be kept on disk; the same that the kubelet computes."""
        fields = {
            "username": self.auth.username,
            "password": self.auth.password,
            "auth": self.auth.auth,
            "serveraddress": self.auth.server_address,
            "identitytoken": self.auth.identity_token,
            "registrytoken": self.auth.registry_token,
        }
        said = msgspec.json.encode({name: value for name, value in fields.items() if value})
        return hashlib.sha256(_escaped_as_go_does(said)).hexdigest()


@dataclass(frozen=True, slots=True)
class Keyring:
    """Credentials by registry key, in the order they were given."""

    entries: tuple[tuple[str, Credential], ...] = ()

    def __add__(self, other: Keyring) -> Keyring:
        return Keyring(self.entries + other.entries)

    def lookup(self, image: str) -> list[Credential]:
        """The credentials to try for an image, in turn; each only once."""
        repository = parse(image).repository
        fitting = [entry for entry in self.entries if _fits(entry[0], repository)]
        if not fitting and repository.startswith(f"{DEFAULT_DOMAIN}/"):
            fitting = [entry for entry in self.entries if entry[0] == _DOCKER_HUB_KEY]
        # Reverse order puts `quay.io/team` before `quay.io`; the sort is stable for equal keys.
        fitting.sort(key=lambda entry: entry[0], reverse=True)
        return list(dict.fromkeys(credential for _, credential in fitting))


def keyring_of(auths: Mapping[str, RegistryAuth], source: SecretSource | None = None) -> Keyring:
    """A keyring of one credential file."""
    return Keyring(
        tuple(
            (_registry_key(registry), Credential(auth, source)) for registry, auth in auths.items()
        )
    )


def keyring_of_secrets(secrets: Iterable[Secret]) -> Keyring:
    """A keyring of a pod's pull secrets; secrets of other types are passed over."""
    keyring = Keyring()
    for secret in secrets:
        keyring += _keyring_of_secret(secret)
    return keyring


def _keyring_of_secret(secret: Secret) -> Keyring:
    data_key, parse_file = _PARSERS.get(secret.type, ("", None))
    content = secret.data.get(data_key, b"")
    if parse_file is None or not content:
        return Keyring()
    source = SecretSource(secret.namespace, secret.name, secret.metadata.uid)
    try:
        return keyring_of(parse_file(content), source)
    except InvalidDockerConfigError as error:
        raise InvalidDockerConfigError(f"secret {secret.key}: {error}") from None


def _registry_key(registry: str) -> str:
    """Keys are written as URLs, hosts, or `…/v1/`: the scheme and the API's version say nothing."""
    bare = registry.removeprefix("https://").removeprefix("http://")
    host, _, path = bare.partition("/")
    path = f"/{path}"
    if path.startswith(("/v1/", "/v2/")):
        path = path[3:]
    return host if path == "/" else host + path


def _fits(key: str, repository: str) -> bool:
    key_host, _, key_path = key.partition("/")
    host, _, path = repository.partition("/")
    key_name, _, key_port = key_host.partition(":")
    name, _, port = host.partition(":")
    key_parts, parts = key_name.split("."), name.split(".")
    return (
        key_port == port
        and len(key_parts) == len(parts)
        and path.startswith(key_path)
        and all(map(fnmatchcase, parts, key_parts))
    )


def _escaped_as_go_does(text: bytes) -> bytes:
    for character in b"<>&":
        text = text.replace(bytes([character]), b"\\u%04x" % character)
    return text
