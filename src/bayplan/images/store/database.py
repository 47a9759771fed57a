"""The catalogue's database: images by handler, and the repositories of blobs.

A blob in the store must not be used by everyone: a registry that names the digest of another's
private content must not get it. So a blob counts as present only for repositories that are known to
have it: those that sent its bytes, and those of a registry that once sent them and now reports that
this repository has them too.

Snapshots are named by the diff ids of their layers, which an image merely claims. So the diff id of
a blob is recorded once it was computed, and a snapshot is used only with the right blobs.

The database survives a kill at any moment. Rows hold the images as JSON with their key; everything
is read once at the start.
"""

import enum
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from bayplan.images.layers.unpack import StoreUsage
from bayplan.images.platforms import Platform
from bayplan.kube.imagereferences import Repository


class ContentKind(enum.Enum):
    """The kinds of content."""

    BLOB = "blob"
    SNAPSHOT = "chain"


class ContentRef(NamedTuple):
    """A blob or snapshot; both may have the same digest."""

    kind: ContentKind
    digest: str


class StoredImageKey(msgspec.Struct, frozen=True):
    """The key of a stored image: the handler, and the digest of the image's config."""

    handler: str
    image_id: str


class StoredImage(msgspec.Struct, frozen=True):
    """A complete image of one handler, with the content it uses."""

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
    def key(self) -> StoredImageKey:
        """The key of this image."""
        return StoredImageKey(self.handler, self.image_id)

    @property
    def content(self) -> list[ContentRef]:
        """All blobs and snapshots it uses."""
        blobs = [ContentRef(ContentKind.BLOB, digest) for digest in self.blobs]
        return blobs + [ContentRef(ContentKind.SNAPSHOT, chain) for chain in self.chains]

    @property
    def tags(self) -> list[str]:
        """Its names with a tag."""
        return [name for name in self.names if "@" not in name]

    @property
    def digests(self) -> list[str]:
        """Its names with a digest."""
        return [name for name in self.names if "@" in name]


SourceRow = tuple[str, str, str]
"""A blob's digest, and a registry and repository that has it."""


class Provenance:
    """The repositories and diff ids of stored blobs."""

    def __init__(self, sources: Iterable[SourceRow], contents: dict[str, str]) -> None:
        self._sources: defaultdict[str, set[Repository]] = defaultdict(set)
        for digest, registry, path in sources:
            self.prove(digest, Repository(registry, path))
        self._contents = dict(contents)

    def prove(self, digest: str, repository: Repository) -> None:
        """Record that a repository has a blob."""
        self._sources[digest].add(repository)

    def is_proved(self, digest: str, repository: Repository) -> bool:
        """Return whether a repository is known to have a blob."""
        return repository in self._sources.get(digest, ())

    def is_known_to(self, digest: str, registry: str) -> bool:
        """Return whether a registry has ever sent a blob, for any repository."""
        return any(one.registry == registry for one in self._sources.get(digest, ()))

    def unpacks_to(self, digest: str, diff_id: str) -> None:
        """Record the diff id of a layer's blob."""
        self._contents[digest] = diff_id

    def content_of(self, digest: str) -> str | None:
        """Return the diff id of a layer's blob; None if it was not computed."""
        return self._contents.get(digest)

    def forget(self, digest: str) -> None:
        """Drop the records of a removed blob."""
        self._sources.pop(digest, None)
        self._contents.pop(digest, None)

    def source_rows(self, digests: Iterable[str]) -> list[SourceRow]:
        """Return the database rows of blobs' repositories."""
        return [
            (digest, one.registry, one.path)
            for digest in digests
            for one in sorted(self._sources.get(digest, ()))
        ]

    def contents(self, digests: Iterable[str]) -> dict[str, str]:
        """Return the diff ids of layers' blobs, for the database."""
        return {digest: self._contents[digest] for digest in digests if digest in self._contents}


_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
  handler TEXT NOT NULL, image_id TEXT NOT NULL, entry BLOB NOT NULL,
  PRIMARY KEY (handler, image_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chains (
  chain_id TEXT PRIMARY KEY, bytes INTEGER NOT NULL, inodes INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources (
  digest TEXT NOT NULL, registry TEXT NOT NULL, repository TEXT NOT NULL,
  PRIMARY KEY (digest, registry, repository)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contents (
  digest TEXT PRIMARY KEY, diff_id TEXT NOT NULL
) WITHOUT ROWID;
"""
_VERSION = 2
_READABLE = {0, 1, _VERSION}
"""Version 1 had no sources: its blobs are downloaded again when needed."""


class ContentMetadata(NamedTuple):
    """The metadata of an image's content for the database."""

    chains: dict[str, StoreUsage] = {}
    sources: list[SourceRow] = []
    contents: dict[str, str] = {}


_NOTHING = ContentMetadata()


class CatalogueDatabase:
    """The catalogue's database file. Calls block; one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(path)
        except sqlite3.Error as error:
            self._connection.close()
            raise ValueError(f"{path} cannot be used as a catalogue: {error}") from error

    def _prepare(self, path: Path) -> None:
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.execute("PRAGMA synchronous=FULL")
        found = self._connection.execute("PRAGMA user_version").fetchone()[0]
        if found not in _READABLE:
            raise ValueError(f"{path} was written by another version ({found}, not {_VERSION})")
        self._connection.executescript(_SCHEMA)
        self._connection.execute(f"PRAGMA user_version={_VERSION}")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def entries(self) -> list[StoredImage]:
        """Return every image."""
        rows = self._connection.execute("SELECT entry FROM entries").fetchall()
        return [msgspec.json.decode(row[0], type=StoredImage) for row in rows]

    def chains(self) -> dict[str, StoreUsage]:
        """Return the disk usage of every snapshot."""
        rows = self._connection.execute("SELECT chain_id, bytes, inodes FROM chains").fetchall()
        return {chain: StoreUsage(size, inodes) for chain, size, inodes in rows}

    def sources(self) -> list[SourceRow]:
        """Return the repositories of every blob."""
        return self._connection.execute("SELECT * FROM sources").fetchall()

    def contents(self) -> dict[str, str]:
        """Return the diff ids of layers' blobs."""
        return dict(self._connection.execute("SELECT digest, diff_id FROM contents").fetchall())

    def write(
        self,
        changed: list[StoredImage],
        removed: list[StoredImageKey],
        facts: ContentMetadata = _NOTHING,
    ) -> None:
        """Write changed and removed images and content metadata, in one transaction."""
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(
                "INSERT OR REPLACE INTO entries VALUES (?, ?, ?)",
                [(e.handler, e.image_id, msgspec.json.encode(e)) for e in changed],
            )
            self._connection.executemany(
                "DELETE FROM entries WHERE handler = ? AND image_id = ?",
                [(key.handler, key.image_id) for key in removed],
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO chains VALUES (?, ?, ?)",
                [(chain, *usage) for chain, usage in facts.chains.items()],
            )
            self._connection.executemany(
                "INSERT OR IGNORE INTO sources VALUES (?, ?, ?)", facts.sources
            )
            self._connection.executemany(
                "INSERT OR REPLACE INTO contents VALUES (?, ?)", facts.contents.items()
            )

    def forget_content(self, content: Iterable[ContentRef]) -> None:
        """Delete the metadata of removed content."""
        blobs = [(one.digest,) for one in content if one.kind is ContentKind.BLOB]
        chains = [(one.digest,) for one in content if one.kind is ContentKind.SNAPSHOT]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM sources WHERE digest = ?", blobs)
            self._connection.executemany("DELETE FROM contents WHERE digest = ?", blobs)
            self._connection.executemany("DELETE FROM chains WHERE chain_id = ?", chains)

    def described(self) -> list[ContentRef]:
        """Return all content that has metadata."""
        blobs = {row[0] for row in self.sources()} | set(self.contents())
        return [
            *(ContentRef(ContentKind.BLOB, digest) for digest in blobs),
            *(ContentRef(ContentKind.SNAPSHOT, chain) for chain in self.chains()),
        ]
