"""Image references, as in the `image` field of a container, parsed as container runtimes do.

    [registry[:port]/]path[:tag][@algorithm:hex]

A reference is *familiar* as a user writes it (`busybox`) and *normal* once its registry, its
`library/` and its default tag are filled in (`docker.io/library/busybox:latest`). The image manager
passes the familiar form to the runtime, with only the tag added, and keeps records by the familiar
name; the puller and the store use the normal form, with a tag or a digest; the API server reads
only the tag, from which it defaults the pull policy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NamedTuple

DEFAULT_REGISTRY = "docker.io"
DEFAULT_TAG = "latest"
_LEGACY_REGISTRY = "index.docker.io"
_OFFICIAL_PREFIX = "library/"
_MAX_NAME_LENGTH = 255

_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_DOMAIN = rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_DOMAIN}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::(?P<tag>\w[\w.-]{0,127}))?"
    rf"(?:@(?P<digest>{_DIGEST}))?",
    re.ASCII,
)
_VERIFIABLE_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_IMAGE_ID = re.compile(r"(?:sha256:)?(?P<hex>[0-9a-f]{64})")


class InvalidReferenceError(ValueError):
    """The text is not an image reference."""


class Repository(NamedTuple):
    """A repository of a registry."""

    registry: str
    path: str

    def __str__(self) -> str:
        return f"{self.registry}/{self.path}"


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A normalised reference: full registry and path; tag and digest as written, if any."""

    registry: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> Repository:
        """Registry and path, as in `docker.io/library/busybox`."""
        return Repository(self.registry, self.path)

    @property
    def familiar_repository(self) -> str:
        """The repository without the default registry and `library/`, as in `busybox`."""
        if self.registry != DEFAULT_REGISTRY:
            return str(self.repository)
        return self.path.removeprefix(_OFFICIAL_PREFIX)

    @property
    def target(self) -> str:
        """The digest or tag to request from the registry; a digest wins over a tag."""
        return self.digest or self.tag

    def with_default_tag(self) -> ImageReference:
        """Return this reference, with `latest` if it has neither a tag nor a digest."""
        return self if self.tag or self.digest else replace(self, tag=DEFAULT_TAG)

    def to_pull(self) -> ImageReference:
        """Return this reference with a digest or a tag, not both."""
        return replace(self, tag="") if self.digest else self.with_default_tag()

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{tag}{digest}"


def parse_image(text: str) -> ImageReference:
    """Parse a reference and add its default registry and path; no default tag is added.

    >>> str(parse_image("busybox@sha256:" + "0" * 64))[:24]
    'docker.io/library/busybo'
    >>> parse_image("localhost:5000/app:1").registry
    'localhost:5000'
    """
    match = _match(text)
    registry, path = _split_registry(match["name"])
    if len(registry) + 1 + len(path) > _MAX_NAME_LENGTH:
        raise InvalidReferenceError(f"{text!r}: the name is longer than {_MAX_NAME_LENGTH}")
    digest = _checked_digest(text, match["digest"] or "")
    return ImageReference(registry, path, match["tag"] or "", digest)


def with_default_tag(text: str) -> str:
    """Return the reference as written, with `:latest` added if it has neither tag nor digest."""
    reference = parse_image(text)
    return text if reference.tag or reference.digest else f"{text}:{DEFAULT_TAG}"


def without_tag_or_digest(text: str) -> str:
    """Return the name as written, without tag and digest: the key of credential records."""
    parse_image(text)
    return _match(text)["name"]


def image_id(text: str) -> str | None:
    """Return `sha256:…` if the text is an image ID (with or without algorithm), else None."""
    match = _IMAGE_ID.fullmatch(text)
    return f"sha256:{match['hex']}" if match else None


def is_digest(text: str) -> bool:
    """Return whether a text is a digest that can be verified."""
    return _VERIFIABLE_DIGEST.fullmatch(text) is not None


def _match(text: str) -> re.Match[str]:
    match = _REFERENCE.fullmatch(text)
    if match and not _IMAGE_ID.fullmatch(text) and _is_lower(_split_registry(match["name"])[1]):
        return match
    raise InvalidReferenceError(_invalid_reason(text))


def _is_lower(path: str) -> bool:
    """Return whether a path is lower case; only a registry may have capitals, as any host."""
    return path == path.lower()


def _invalid_reason(text: str) -> str:
    """Return which of the usual mistakes was made."""
    if not text:
        return "an image reference must not be empty"
    if _IMAGE_ID.fullmatch(text):
        return f"{text!r}: an image ID cannot be pulled"
    if _REFERENCE.fullmatch(text.lower()):
        return f"{text!r}: the repository's name must be lower case"
    return f"{text!r} is not an image reference of the form [registry/]name[:tag][@digest]"


def _split_registry(name: str) -> tuple[str, str]:
    """Split a name into registry and path, with their defaults."""
    first, slash, rest = name.partition("/")
    if slash and _looks_like_registry(first):
        registry, path = first, rest
    else:
        registry, path = DEFAULT_REGISTRY, name
    if registry == _LEGACY_REGISTRY:
        registry = DEFAULT_REGISTRY
    if registry == DEFAULT_REGISTRY and "/" not in path:
        path = _OFFICIAL_PREFIX + path
    return registry, path


def _looks_like_registry(component: str) -> bool:
    """Return whether a component is a host: with a dot, a port or a capital, or `localhost`."""
    return (
        "." in component
        or ":" in component
        or component == "localhost"
        or component != component.lower()
    )


def _checked_digest(text: str, digest: str) -> str:
    if not digest:
        return ""
    if not is_digest(digest):
        raise InvalidReferenceError(f"{text!r}: {digest!r} is not a sha256 or sha512 digest")
    return digest
