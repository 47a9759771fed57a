"""Which form of an object a client wants: JSON (or YAML), a Table, or the metadata alone."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import not_acceptable

OFFERED = ("application/json", "application/yaml")
_NAMED = (*OFFERED, "application/vnd.kubernetes.protobuf")
"""What is said to be offered: every client that asks for the last takes others, too."""
_VERSIONS = ("v1", "v1beta1")
_TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")


class Form(NamedTuple):
    """How to write an answer."""

    media_type: str = "application/json"
    transform: str = ""
    version: str = "v1"

    @property
    def meta_version(self) -> str:
        """The apiVersion of what is transformed."""
        return f"meta.k8s.io/{self.version}"

    @property
    def content_type(self) -> bytes:
        """The header's value."""
        if not self.transform:
            return self.media_type.encode()
        return f"{self.media_type};as={self.transform};v={self.version};g=meta.k8s.io".encode()


PLAIN = Form()


@lru_cache(maxsize=256)
def negotiate(accept: bytes | None) -> Form:
    """The best form that is both wanted and offered; 406 if there is none."""
    if not accept:
        return PLAIN
    choices = [_parse(part) for part in accept.decode("latin-1").split(",")]
    for _, form in sorted(choices, key=lambda choice: -choice[0]):
        if form is not None:
            return form
    raise not_acceptable(_NAMED)


def _parse(part: str) -> tuple[float, Form | None]:
    media_type, *pairs = (piece.strip() for piece in part.split(";"))
    parameters = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
    try:
        quality = float(parameters.get("q", "1"))
    except ValueError:
        quality = 0.0
    return quality, _form(media_type.lower(), parameters)


def _form(media_type: str, parameters: dict[str, str]) -> Form | None:
    if media_type in ("*/*", "application/*"):
        media_type = "application/json"
    if media_type not in OFFERED:
        return None
    transform = parameters.get("as", "")
    if not transform:
        return Form(media_type)
    known = transform in _TRANSFORMS and parameters.get("g") == "meta.k8s.io"
    version = parameters.get("v", "")
    return Form(media_type, transform, version) if known and version in _VERSIONS else None
