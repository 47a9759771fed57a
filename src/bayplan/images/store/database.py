"""The catalogue on the disk: SQLite, one transaction a change.

Its journal survives a kill at any moment. Rows hold the entries as JSON with their key beside
them; everything is read once at the start, and the catalogue answers from memory.
"""

import sqlite3
from pathlib import Path

import msgspec

from bayplan.images.layers.clone import Usage
from bayplan.images.store.entries import Entry, EntryKey

_SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
  handler TEXT NOT NULL, image_id TEXT NOT NULL, entry BLOB NOT NULL,
  PRIMARY KEY (handler, image_id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chains (
  chain_id TEXT PRIMARY KEY, bytes INTEGER NOT NULL, inodes INTEGER NOT NULL
) WITHOUT ROWID;
"""
_VERSION = 1


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
        if found not in {0, _VERSION}:
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

    def write(
        self, changed: list[Entry], removed: list[EntryKey], chains: dict[str, Usage]
    ) -> None:
        """Write entries away, all of them or none; the chains they use with what they occupy."""
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
                [(chain, *usage) for chain, usage in chains.items()],
            )

    def forget_chains(self, chains: list[str]) -> None:
        """Drop chains that are no longer there."""
        with self._connection:
            self._connection.executemany(
                "DELETE FROM chains WHERE chain_id = ?", [(chain,) for chain in chains]
            )
