"""Names of images, as people write them and as registries know them.

`busybox` is short for `docker.io/library/busybox:latest`. `parse_reference` gives the long form;
entries are stored and compared by it, so that every spelling finds the same image.
"""

import ipaddress
import re

import msgspec

from bayplan.images.registry.errors import InvalidReferenceError

_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_PATH = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]{{1,5}})?")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_NAME_LIMIT = 255
DOCKER_HUB = "docker.io"


class Reference(msgspec.Struct, frozen=True):
    """An image's full name: where, which repository, and a tag or a digest."""

    registry: str
    repository: str
    tag: str = ""
    digest: str = ""

    @property
    def name(self) -> str:
        """The repository with its registry."""
        return f"{self.registry}/{self.repository}"

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
    rest, _, digest = text.partition("@")
    if (digest or "@" in text) and not is_digest(digest):
        raise InvalidReferenceError(f"image name {text!r}: {digest!r} is not a sha256 digest")
    registry, path = _split_registry(rest)
    path, _, tag = path.partition(":")
    if ":" in rest and not tag and rest.endswith(":"):
        raise InvalidReferenceError(f"image name {text!r} has an empty tag")
    _check(text, registry, path, tag)
    if registry == DOCKER_HUB and "/" not in path:
        path = f"library/{path}"
    return Reference(registry, path, "" if digest else tag or "latest", digest)


def _split_registry(rest: str) -> tuple[str, str]:
    first, slash, path = rest.partition("/")
    has_registry = slash and ("." in first or ":" in first or first == "localhost")
    if not has_registry:
        return DOCKER_HUB, rest
    return DOCKER_HUB if first == "index.docker.io" else first, path


def _check(text: str, registry: str, path: str, tag: str) -> None:
    if not _DOMAIN.fullmatch(registry):
        raise InvalidReferenceError(f"image name {text!r}: {registry!r} is not a registry's host")
    if not _PATH.fullmatch(path) or len(path) > _NAME_LIMIT:
        raise InvalidReferenceError(f"image name {text!r}: {path!r} is not a repository's name")
    if tag and not _TAG.fullmatch(tag):
        raise InvalidReferenceError(f"image name {text!r}: {tag!r} is not a tag")


def is_loopback(host: str) -> bool:
    """Say whether a registry's host is this machine, which speaks plain HTTP."""
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return name == "localhost"
