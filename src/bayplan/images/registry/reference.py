"""Names of images, as people write them and as registries know them.

`busybox` is short for `docker.io/library/busybox:latest`. `parse_reference` gives the long form;
entries are stored and compared by it, so that every spelling finds the same image. The spelling
itself is read in `bayplan.images.references`.
"""

import ipaddress
import re
from typing import NamedTuple

import msgspec

from bayplan.images import references
from bayplan.images.registry.errors import InvalidReferenceError

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
DOCKER_HUB = references.DEFAULT_DOMAIN


class Repository(NamedTuple):
    """Where images of one name live."""

    registry: str
    path: str

    def __str__(self) -> str:
        return f"{self.registry}/{self.path}"


class Reference(msgspec.Struct, frozen=True):
    """An image's full name: where, which repository, and a tag or a digest."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def home(self) -> Repository:
        """The repository with its registry."""
        return Repository(self.registry, self.repository)

    @property
    def name(self) -> str:
        """The repository with its registry, as one text."""
        return str(self.home)

    @property
    def target(self) -> str:
        """What to ask the registry for; a digest wins over a tag."""
        return self.digest or self.tag

    def __str__(self) -> str:
        return f"{self.name}@{self.digest}" if self.digest else f"{self.name}:{self.tag}"


def is_digest(text: str) -> bool:
    """Say whether a text is a digest that we can verify."""
    return _DIGEST.fullmatch(text) is not None


def parse_reference(text: str) -> Reference:
    """Read an image's name in any of its spellings."""
    try:
        found = references.parse(text)
    except references.InvalidReferenceError as error:
        raise InvalidReferenceError(f"image name {error}") from None
    tag = "" if found.digest else found.tag or references.DEFAULT_TAG
    return Reference(found.domain, found.path, tag, found.digest)


def is_loopback(host: str) -> bool:
    """Say whether a registry's host is this machine, which speaks plain HTTP."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"
