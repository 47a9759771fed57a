"""An image on this node, for one runtime handler."""

import enum
from typing import NamedTuple

import msgspec

from bayplan.images.platforms.platform import Platform


class Kind(enum.Enum):
    """The two sorts of content."""

    BLOB = "blob"
    CHAIN = "chain"


class Content(NamedTuple):
    """A piece of content; a blob and a chain may well have one digest."""

    kind: Kind
    digest: str


class EntryKey(msgspec.Struct, frozen=True):
    """What names an entry: the handler, and the digest of the image's config."""

    handler: str
    image_id: str


class Entry(msgspec.Struct, frozen=True):
    """An image that is here whole, with everything it uses."""

    handler: str
    image_id: str
    manifest: str
    size: int
    user: str
    platform: Platform
    names: tuple[str, ...]  # full references, by tag and by digest
    blobs: tuple[str, ...]
    chains: tuple[str, ...]

    @property
    def key(self) -> EntryKey:
        """What names this entry."""
        return EntryKey(self.handler, self.image_id)

    @property
    def content(self) -> list[Content]:
        """Everything it uses."""
        blobs = [Content(Kind.BLOB, digest) for digest in self.blobs]
        return blobs + [Content(Kind.CHAIN, chain) for chain in self.chains]

    @property
    def tags(self) -> list[str]:
        """Its names by tag."""
        return [name for name in self.names if "@" not in name]

    @property
    def digests(self) -> list[str]:
        """Its names by digest."""
        return [name for name in self.names if "@" in name]
