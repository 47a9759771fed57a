"""OpenAPI version 2 as protobuf, which kubectl asks for before it reads a `List` or a kind that
nobody serves.

It looks there for types to check objects by, and where it finds none leaves the checking to the
server, which does it for every write anyway. So only the document's head is written.
"""

from __future__ import annotations

from bayplan.embedded.apiserver.discovery.version import version_info

CONTENT_TYPE = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_NAMES = (b"proto-openapi.spec.v2.v1.0+protobuf", b"proto-openapi.spec.v2@v1.0+protobuf")


def is_wanted(accept: bytes | None) -> bool:
    """Whether a client would rather have protobuf than JSON."""
    first = (accept or b"").partition(b",")[0]
    return any(name in first for name in _NAMES)


def head() -> bytes:
    """A document with its version and its title, and no types."""
    version = str(version_info()["gitVersion"]).encode()
    return _field(1, b"2.0") + _field(2, _field(1, b"Kubernetes") + _field(2, version))


def _field(number: int, content: bytes) -> bytes:
    """A short text or message, as protobuf writes it."""
    return bytes((number << 3 | 2, len(content))) + content
