"""The state of the page: tables of rows, and the rows that changed since the last call.

A row is a list of plain values in the order of its table's columns; the first is its id. Setting an
equal row changes nothing, so rows may be computed too often: only real changes are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from bayplan.base.values import JsonValue

Row: TypeAlias = "list[JsonValue]"

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "zones": ("id",),
    "groups": (
        "id", "title", "size", "target", "min", "max", "price", "source", "upcoming",
    ),
    "nodes": (
        "id", "group", "zone", "ready", "cordoned", "taints", "cpu", "memory", "podsMax",
        "upcoming", "type", "note", "missing",
    ),
    "rails": ("id", "node", "driver", "used", "limit", "origin", "over"),
    "pods": (
        "id", "node", "cpu", "memory", "volumes", "owner", "priority", "phase", "state", "queue",
        "upcoming",
    ),
    "waiting": (
        "id", "cause", "driver", "title", "pods", "count", "since", "message", "sample",
    ),
    "queues": (
        "id", "parent", "title", "state", "weight", "share", "quota", "allocated", "reserved",
        "requested", "deserved", "guaranteed", "waiting", "next", "why", "problem",
    ),
    "plans": (
        "id", "title", "made", "steps", "pending", "removals", "cost", "note",
    ),
    "events": ("id", "time", "type", "reason", "about", "message", "count"),
}  # fmt: skip
"""The columns of each table; new ones may be added only at the end."""


class Changes:
    """Rows set and dropped, by table."""

    def __init__(self) -> None:
        self.set: dict[str, list[Row]] = {}
        self.drop: dict[str, list[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.set or self.drop)


class Tables:
    """All rows by table and id."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Row]] = {name: {} for name in COLUMNS}
        self._touched: dict[str, dict[str, Row | None]] = {}
        """By table and id, the row when changes were last taken."""

    def __getitem__(self, table: str) -> Mapping[str, Row]:
        return self._rows[table]

    def set(self, table: str, row: Row) -> None:
        """Add a row, or replace the one of its id."""
        rows, name = self._rows[table], row[0]
        if not isinstance(name, str):
            raise TypeError(f"{table}: a row's id is text, not {name!r}")
        before = rows.get(name)
        if before != row:
            self._touched.setdefault(table, {}).setdefault(name, before)
            rows[name] = row

    def drop(self, table: str, name: str) -> None:
        """Remove a row, if it is there."""
        before = self._rows[table].pop(name, None)
        if before is not None:
            self._touched.setdefault(table, {}).setdefault(name, before)

    def replace(self, table: str, rows: Iterable[Row]) -> None:
        """Replace all rows of a table."""
        gone = set(self._rows[table])
        for row in rows:
            self.set(table, row)
            gone.discard(str(row[0]))
        for name in gone:
            self.drop(table, name)

    def take_changes(self) -> Changes:
        """Return the changes since the last call."""
        found, touched = Changes(), self._touched
        self._touched = {}
        for table, names in touched.items():
            rows = self._rows[table]
            for name, before in names.items():
                row = rows.get(name)
                if row is None and before is not None:
                    found.drop.setdefault(table, []).append(name)
                elif row is not None and row != before:
                    found.set.setdefault(table, []).append(row)
        return found

    def forget_changes(self) -> None:
        """Forget the changes so far."""
        self._touched = {}

    def rows(self) -> dict[str, list[Row]]:
        """Return the current rows by table; a row is never changed, only replaced."""
        return {name: list(rows.values()) for name, rows in self._rows.items()}

    def __iter__(self) -> Iterator[tuple[str, Mapping[str, Row]]]:
        return iter(self._rows.items())
