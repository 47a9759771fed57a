"""The file: one append-only table of changes in SQLite, in WAL mode.

Each write is one row whose key is the resource version, so the counter and the data can never
disagree and appending touches only the end of one tree. The newest row of an object is its state;
older rows and tombstones are the history that watches resume from, until compaction removes them.

`synchronous=NORMAL` in WAL mode hands each commit to the operating system before it is
acknowledged: that survives the death of the process at any moment. `FULL` also waits for the disk,
which a power cut needs.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

Durability = Literal["process", "power"]

_SCHEMA = """
CREATE TABLE IF NOT EXISTS history (
    revision INTEGER PRIMARY KEY,
    storage TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    deleted INTEGER NOT NULL, data BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
_FORMAT = 1


class StoreError(Exception):
    """The data file cannot be used."""


class Row(NamedTuple):
    """One change."""

    revision: int
    storage: str
    namespace: str
    name: str
    deleted: bool
    data: bytes


class Database:
    """The data file of one server; nobody else may have it open for writing."""

    def __init__(self, path: Path | None, durability: Durability = "process") -> None:
        self.path = path
        try:
            self._connection = _connect(path, durability)
            self._connection.executescript(_SCHEMA)
            self._check_format()
        except sqlite3.Error as problem:
            raise StoreError(f"{path}: not usable as a data file: {problem}") from problem

    def _check_format(self) -> None:
        found = self.get_meta("format")
        if found is None:
            self.put_meta("format", str(_FORMAT).encode())
        elif found != str(_FORMAT).encode():
            raise StoreError(f"{self.path}: format {found.decode()} is not {_FORMAT}")

    def rows(self) -> Iterator[Row]:
        """The whole history, oldest first."""
        query = "SELECT revision, storage, namespace, name, deleted, data FROM history ORDER BY 1"
        return map(Row._make, self._connection.execute(query))

    def append(self, row: Row) -> None:
        """Write one change; when this returns, it survives the process."""
        self._connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", row)

    def forget(self, revisions: Iterable[int], upto: int) -> None:
        """Remove superseded rows; everything up to `upto` is compacted away afterwards."""
        self._connection.execute("BEGIN")
        self._connection.executemany(
            "DELETE FROM history WHERE revision = ?", [(revision,) for revision in revisions]
        )
        self.put_meta("compacted", str(upto).encode())
        self._connection.execute("COMMIT")

    def compacted(self) -> int:
        """The revision up to which history is gone."""
        return int(self.get_meta("compacted") or b"0")

    def get_meta(self, key: str) -> bytes | None:
        """A value kept beside the objects."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put_meta(self, key: str, value: bytes) -> None:
        """Keep a value beside the objects."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def _connect(path: Path | None, durability: Durability) -> sqlite3.Connection:
    if path is not None:
        path.touch(mode=0o600, exist_ok=True)
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={'FULL' if durability == 'power' else 'NORMAL'}")
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    return connection
