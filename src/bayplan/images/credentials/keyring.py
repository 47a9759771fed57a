"""Keyrings of pods and nodes: credentials for an image, with their source.

Keyrings are read from Docker's files (`bayplan.images.registry.credentials`). A credential has the
secret or the service account that it came from; one without a source is the node's, and so may be
used by all its pods.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bayplan.images.registry.credentials import (
    Keyring,
    RegistryCredentials,
    read_docker_config,
    read_legacy_docker_config,
)
from bayplan.images.runtime.objects import RegistryAuth
from bayplan.kube.imagereferences import parse_image
from bayplan.kube.secrets import DOCKER_CONFIG_JSON_TYPE, DOCKER_CONFIG_TYPE, Secret

_READERS = {
    DOCKER_CONFIG_JSON_TYPE: (".dockerconfigjson", read_docker_config),
    DOCKER_CONFIG_TYPE: (".dockercfg", read_legacy_docker_config),
}
Entry = tuple[str, RegistryCredentials]
"""A registry's key and its credentials."""


@dataclass(frozen=True, slots=True, order=True)
class SecretSource:
    """The secret that a credential came from."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, order=True)
class ServiceAccountSource:
    """The service account for which a plugin returned a credential."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential for a registry, and its source."""

    auth: RegistryAuth
    source: SecretSource | ServiceAccountSource | None = None

    @property
    def hash(self) -> str:
        """A hash that can be kept on disk; the same as the kubelet's."""
        fields = {
            "username": self.auth.username,
            "password": self.auth.password,
            "auth": self.auth.auth,
            "serveraddress": self.auth.server_address,
            "identitytoken": self.auth.identity_token,
            "registrytoken": self.auth.registry_token,
        }
        encoded = msgspec.json.encode({name: value for name, value in fields.items() if value})
        return hashlib.sha256(_escaped_as_go_does(encoded)).hexdigest()


PodKeyring = Keyring[Credential]
"""A keyring of credentials with their sources."""


def credentials_for(keyring: PodKeyring, image: str) -> list[Credential]:
    """Return the credentials to try for an image, in order."""
    reference = parse_image(image)
    return keyring.lookup(reference.registry, reference.path)


def keyring_of(entries: Iterable[Entry], source: SecretSource | None = None) -> PodKeyring:
    """Return the keyring of a credential file."""
    return Keyring.of((key, Credential(_auth(found), source)) for key, found in entries)


def keyring_of_secret(secret: Secret) -> PodKeyring:
    """Return the keyring of a pull secret, empty for other types; ValueError if it is malformed."""
    data_key, read = _READERS.get(secret.type, ("", None))
    content = secret.data.get(data_key, b"")
    if read is None or not content:
        return Keyring()
    source = SecretSource(secret.namespace, secret.name, secret.metadata.uid)
    return keyring_of(read(content, f"secret {secret.key}"), source)


def keyring_of_file(path: Path) -> PodKeyring:
    """Return the node's keyring of a Docker config.json; ValueError or OSError if there is none."""
    return keyring_of(read_docker_config(path.read_bytes(), str(path)))


def _auth(found: RegistryCredentials) -> RegistryAuth:
    return RegistryAuth(
        username=found.username,
        password=found.password,
        identity_token=found.identity_token,
        registry_token=found.registry_token,
    )


def _escaped_as_go_does(text: bytes) -> bytes:
    for character in b"<>&":
        text = text.replace(bytes([character]), b"\\u%04x" % character)
    return text
