"""Image references: what a pod writes in `image:`, read the way every runtime reads it.

    [domain[:port]/]path[:tag][@algorithm:hex]

A reference is *familiar* as a user writes it (`busybox`) and *normal* once its registry, its
`library/` and its default tag are filled in (`docker.io/library/busybox:latest`). The image manager
hands the familiar form on to the runtime, with nothing but the tag added, and keeps records by the
familiar name; the puller and the store work on the normal form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

DEFAULT_DOMAIN = "docker.io"
DEFAULT_TAG = "latest"
_LEGACY_DOMAIN = "index.docker.io"
_OFFICIAL_PREFIX = "library/"
_MAX_NAME_LENGTH = 255
_DIGEST_HEX_LENGTHS = {"sha256": 64, "sha512": 128}

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
_IMAGE_ID = re.compile(r"(?:sha256:)?(?P<hex>[0-9a-f]{64})")


class InvalidReferenceError(ValueError):
    """The text is not an image reference."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A normal reference: registry and path are whole; tag and digest as written, if they were."""

    domain: str
    path: str
    tag: str = ""
    digest: str = ""

    @property
    def repository(self) -> str:
        """Registry and path, as in `docker.io/library/busybox`."""
        return f"{self.domain}/{self.path}"

    @property
    def familiar_repository(self) -> str:
        """The repository without what goes without saying, as in `busybox`."""
        if self.domain != DEFAULT_DOMAIN:
            return self.repository
        return self.path.removeprefix(_OFFICIAL_PREFIX)

    def with_default_tag(self) -> Reference:
        """The same reference; `latest` if it names neither a tag nor a digest."""
        return self if self.tag or self.digest else replace(self, tag=DEFAULT_TAG)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.repository}{tag}{digest}"


def parse(text: str) -> Reference:
    """Read a reference and fill in its registry and path; no default tag is added.

    >>> str(parse("busybox@sha256:" + "0" * 64))[:24]
    'docker.io/library/busybo'
    >>> parse("localhost:5000/app:1").domain
    'localhost:5000'
    """
    match = _match(text)
    domain, path = _split_domain(match["name"])
    if len(domain) + 1 + len(path) > _MAX_NAME_LENGTH:
        raise InvalidReferenceError(f"{text!r}: the name is longer than {_MAX_NAME_LENGTH}")
    return Reference(domain, path, match["tag"] or "", _checked_digest(text, match["digest"] or ""))


def with_default_tag(text: str) -> str:
    """The reference as written, with `:latest` added where it has neither tag nor digest."""
    reference = parse(text)
    return text if reference.tag or reference.digest else f"{text}:{DEFAULT_TAG}"


def without_tag_or_digest(text: str) -> str:
    """The name as written, without its tag and digest: the key of credential records."""
    parse(text)
    return _match(text)["name"]


def image_id(text: str) -> str | None:
    """`sha256:…` if the text is an image's id (with or without its algorithm), else None."""
    match = _IMAGE_ID.fullmatch(text)
    return f"sha256:{match['hex']}" if match else None


def _match(text: str) -> re.Match[str]:
    match = _REFERENCE.fullmatch(text)
    if match and not _IMAGE_ID.fullmatch(text) and _is_lower(_split_domain(match["name"])[1]):
        return match
    raise InvalidReferenceError(_why_not(text))


def _is_lower(path: str) -> bool:
    """Only a registry may have capitals, as any host may."""
    return path == path.lower()


def _why_not(text: str) -> str:
    """Say which of the usual mistakes was made."""
    if not text:
        return "an image reference must not be empty"
    if _IMAGE_ID.fullmatch(text):
        return f"{text!r}: an image's id is not a reference to pull"
    if _REFERENCE.fullmatch(text.lower()):
        return f"{text!r}: the repository's name must be lower case"
    return f"{text!r} is not an image reference of the form [registry/]name[:tag][@digest]"


def _split_domain(name: str) -> tuple[str, str]:
    """A first component is a registry if it could not be anything else."""
    first, slash, rest = name.partition("/")
    if slash and _looks_like_domain(first):
        domain, path = first, rest
    else:
        domain, path = DEFAULT_DOMAIN, name
    if domain == _LEGACY_DOMAIN:
        domain = DEFAULT_DOMAIN
    if domain == DEFAULT_DOMAIN and "/" not in path:
        path = _OFFICIAL_PREFIX + path
    return domain, path


def _looks_like_domain(component: str) -> bool:
    return "." in component or ":" in component or component == "localhost"


def _checked_digest(text: str, digest: str) -> str:
    if not digest:
        return ""
    algorithm, _, hexadecimal = digest.partition(":")
    if _DIGEST_HEX_LENGTHS.get(algorithm) != len(hexadecimal) or hexadecimal.lower() != hexadecimal:
        raise InvalidReferenceError(f"{text!r}: {digest!r} is not a sha256 or sha512 digest")
    return digest
