"""The catalogue on the disk: images by handler, where content is from; one transaction a change.

That a blob is on this node says nothing about who may have it. A registry that names the digest of
another's private content must not be given it, so content counts as present only for repositories
that it is known to be in: those that sent the bytes, and those of a registry that once sent them
and now says that this repository has them too. A registry's word about content that it never sent
is worth nothing.

Unpacked chains are named by what their layers expand to, which an image merely claims. So that is
remembered by blob as well, once it has been seen: who has the blobs has what they expand to.

Its journal survives a kill at any moment. Rows hold the entries as JSON with their key beside
them; everything is read once at the start, and the catalogue answers from memory.
"""

import enum
import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from bayplan.images.layers.unpack import Usage
from bayplan.images.platforms import Platform
from bayplan.kube.imagereferences import Repository


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


SourceRow = tuple[str, str, str]
"""A blob's digest, and a registry and repository that have it."""


class Provenance:
    """What is known of the blobs that are here."""

    def __init__(self, sources: Iterable[SourceRow], contents: dict[str, str]) -> None:
        self._sources: defaultdict[str, set[Repository]] = defaultdict(set)
        for digest, registry, path in sources:
            self.prove(digest, Repository(registry, path))
        self._contents = dict(contents)

    def prove(self, digest: str, repository: Repository) -> None:
        """Note that a repository has a blob."""
        self._sources[digest].add(repository)

    def is_proved(self, digest: str, repository: Repository) -> bool:
        """Say whether a repository is known to have a blob."""
        return repository in self._sources.get(digest, ())

    def is_known_to(self, digest: str, registry: str) -> bool:
        """Say whether a registry has ever sent a blob, for whichever repository."""
        return any(one.registry == registry for one in self._sources.get(digest, ()))

    def unpacks_to(self, digest: str, diff_id: str) -> None:
        """Note what a layer's blob was seen to expand to."""
        self._contents[digest] = diff_id

    def content_of(self, digest: str) -> str | None:
        """Say what a layer's blob expands to, if that has been seen."""
        return self._contents.get(digest)

    def forget(self, digest: str) -> None:
        """Note that a blob is gone."""
        self._sources.pop(digest, None)
        self._contents.pop(digest, None)

    def source_rows(self, digests: Iterable[str]) -> list[SourceRow]:
        """List where blobs are from, to be written down."""
        return [
            (digest, one.registry, one.path)
            for digest in digests
            for one in sorted(self._sources.get(digest, ()))
        ]

    def contents(self, digests: Iterable[str]) -> dict[str, str]:
        """Give what layers expand to, to be written down."""
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
"""Version 1 knew no sources: what it holds is had from its registries once more when asked for."""


class Facts(NamedTuple):
    """What is written down of an entry's content."""

    chains: dict[str, Usage] = {}
    sources: list[SourceRow] = []
    contents: dict[str, str] = {}


_NOTHING = Facts()


class Database:
    """The catalogue's file. Calls block; one thread at a time."""

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

    def entries(self) -> list[Entry]:
        """Read every entry."""
        rows = self._connection.execute("SELECT entry FROM entries").fetchall()
        return [msgspec.json.decode(row[0], type=Entry) for row in rows]

    def chains(self) -> dict[str, Usage]:
        """Read what every chain occupies."""
        rows = self._connection.execute("SELECT chain_id, bytes, inodes FROM chains").fetchall()
        return {chain: Usage(size, inodes) for chain, size, inodes in rows}

    def sources(self) -> list[SourceRow]:
        """Read where every blob is from."""
        return self._connection.execute("SELECT * FROM sources").fetchall()

    def contents(self) -> dict[str, str]:
        """Read what layers expand to."""
        return dict(self._connection.execute("SELECT digest, diff_id FROM contents").fetchall())

    def write(self, changed: list[Entry], removed: list[EntryKey], facts: Facts = _NOTHING) -> None:
        """Write entries away, all of them or none, with what is known of their content."""
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

    def forget_content(self, content: Iterable[Content]) -> None:
        """Drop what is known of content that is no longer there."""
        blobs = [(one.digest,) for one in content if one.kind is Kind.BLOB]
        chains = [(one.digest,) for one in content if one.kind is Kind.CHAIN]
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("DELETE FROM sources WHERE digest = ?", blobs)
            self._connection.executemany("DELETE FROM contents WHERE digest = ?", blobs)
            self._connection.executemany("DELETE FROM chains WHERE chain_id = ?", chains)

    def described(self) -> list[Content]:
        """List all content of which anything is known."""
        blobs = {row[0] for row in self.sources()} | set(self.contents())
        return [
            *(Content(Kind.BLOB, digest) for digest in blobs),
            *(Content(Kind.CHAIN, chain) for chain in self.chains()),
        ]
