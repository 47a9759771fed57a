"""The data file: one append-only table of changes in SQLite, in WAL mode.

Each write is one row whose key is the resource version, so the counter and the data always agree
and appending touches only the end of one tree. The newest row of an object is its state; older rows
and tombstones are the history that watches resume from, until compaction removes them.

`synchronous=NORMAL` in WAL mode hands each commit to the operating system before it is
acknowledged, which survives a crash of the process. `FULL` also waits for the disk, which is needed
to survive a power cut.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
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
_TABLES = {"history", "meta"}
_FORMAT = 1
log = logging.getLogger(__name__)


class StoreError(Exception):
    """The data file cannot be opened, read or written."""


class HistoryRow(NamedTuple):
    """One change of one object."""

    revision: int
    storage: str
    namespace: str
    name: str
    deleted: bool
    data: bytes


Schedule = Callable[[Callable[[], None]], object]
"""Runs a function soon, before anything that is scheduled later (as an event loop does)."""


class Database:
    """The data file of one server, opened exclusively.

    Writes that follow one another closely share a transaction: the first one begins it and
    schedules its commit. `commit` is called before a response is sent, so that no response reports
    a write that is not on file. After a failed write the file is given up: every later write and
    commit fails.
    """

    def __init__(self, path: Path | None, durability: Durability = "process") -> None:
        self.path = path
        self.schedule: Schedule | None = None
        """How to put off a commit; None commits each write by itself."""
        self.failure: StoreError | None = None
        """Why the file cannot be written any more."""
        self.on_failure: list[Callable[[], None]] = []
        """Called once, when the file can no longer be written."""
        self._open = False
        try:
            self._connection = _connect(path, durability)
            self._connection.executescript(_SCHEMA)
            self._check_format()
        except sqlite3.Error as problem:
            raise StoreError(f"{path}: {_describe_error(problem)}") from problem

    def _check_format(self) -> None:
        found = self.get_meta("format")
        if found is None:
            self.put_meta("format", str(_FORMAT).encode())
        elif found != str(_FORMAT).encode():
            raise StoreError(f"{self.path}: format {found.decode()} is not {_FORMAT}")

    def rows(self) -> Iterator[HistoryRow]:
        """Return the whole history, oldest first."""
        query = "SELECT revision, storage, namespace, name, deleted, data FROM history ORDER BY 1"
        return map(HistoryRow._make, self._connection.execute(query))

    def append(self, row: HistoryRow) -> None:
        """Write one change; it is on file once the scheduled commit has run.

        Without a data file nothing is written.
        """
        if self.path is None:
            return
        with self._writing():
            self._begin()
            self._connection.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?)", row)

    def forget(self, revisions: Iterable[int], upto: int) -> None:
        """Remove superseded rows; everything up to `upto` counts as compacted afterwards."""
        if self.path is None:
            return
        with self._writing():
            self._begin()
            self._connection.executemany(
                "DELETE FROM history WHERE revision = ?", [(revision,) for revision in revisions]
            )
            self.put_meta("compacted", str(upto).encode())

    def _begin(self) -> None:
        if self.schedule is not None and not self._open:
            self._connection.execute("BEGIN")
            self._open = True
            self.schedule(self._commit_now)

    def commit(self) -> None:
        """Commit the open transaction; StoreError if that fails or has failed before."""
        if self._open or self.failure is not None:
            with self._writing():
                self._connection.execute("COMMIT")
                self._open = False

    def _commit_now(self) -> None:
        with suppress(
            StoreError
        ):  # each caller that depends on it gets the error from its own `commit`
            self.commit()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self.failure is not None:
            raise self.failure
        try:
            yield
        except sqlite3.Error as problem:
            log.critical("%s cannot be written", self.path, exc_info=True)
            self.failure = StoreError(f"{self.path}: cannot be written: {problem}")
            for notify in self.on_failure:
                notify()
            raise self.failure from problem

    def compacted(self) -> int:
        """Return the revision up to which history was compacted."""
        return int(self.get_meta("compacted") or b"0")

    def get_meta(self, key: str) -> bytes | None:
        """Return a value of the `meta` table."""
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def put_meta(self, key: str, value: bytes) -> None:
        """Set a value of the `meta` table."""
        with self._writing():
            self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def put_many_meta(self, values: Mapping[str, bytes | None]) -> None:
        """Set several values of the `meta` table in one transaction; None deletes a key."""
        with self._writing():
            if not self._open:
                self._connection.execute("BEGIN")
                self._open = True
            for key, value in values.items():
                if value is None:
                    self._connection.execute("DELETE FROM meta WHERE key = ?", (key,))
                else:
                    self.put_meta(key, value)
        self.commit()

    def list_meta(self, prefix: str) -> dict[str, bytes]:
        """Return the values whose keys have a prefix, by the rest of the key, in order."""
        query = "SELECT key, value FROM meta WHERE substr(key, 1, ?) = ? ORDER BY key"
        rows = self._connection.execute(query, (len(prefix), prefix))
        return {key.removeprefix(prefix): value for key, value in rows}

    def close(self) -> None:
        """Close the file; StoreError if the last writes could not be committed."""
        try:
            if self.failure is None:
                self.commit()
        finally:
            self._connection.close()


def _connect(path: Path | None, durability: Durability) -> sqlite3.Connection:
    if path is not None:
        path.touch(mode=0o600, exist_ok=True)
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=1)
    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    _refuse_foreign(path, connection)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(f"PRAGMA synchronous={'FULL' if durability == 'power' else 'NORMAL'}")
    connection.execute("PRAGMA wal_autocheckpoint=4000")
    return connection


def _refuse_foreign(path: Path | None, connection: sqlite3.Connection) -> None:
    """Refuse a file that has the tables of another program."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    tables = {str(name) for (name,) in connection.execute(query)}
    if tables and not tables >= _TABLES:
        connection.close()
        raise StoreError(f"{path}: this is the database of another program")


def _describe_error(problem: sqlite3.Error) -> str:
    if getattr(problem, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return "in use by another process"
    return f"not usable as a data file: {problem}"
