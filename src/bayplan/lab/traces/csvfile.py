"""Reading a trace: CSV under a line of column names, row by row; errors name line and column."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bayplan.base.suggestions import no_such
from bayplan.lab.traces.rows import READERS, CellError, Row, row_of

MAX_BYTES = 64 << 20
MOST_ROWS = 1_000_000
_LONGEST_CELL = 1000


class TraceError(ValueError):
    """A trace that cannot be used: where, and why."""


def read_trace(path: Path) -> str:
    """The text of a trace, every row of which can be used; TraceError if not."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
    except OSError as problem:
        raise TraceError(f"{path}: {problem.strerror}") from None
    if len(data) > MAX_BYTES:
        raise TraceError(f"{path}: larger than {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise TraceError(f"{path}: not UTF-8: {problem.reason} at byte {problem.start}") from None
    return checked(text, str(path))


def checked(text: str, source: str = "trace") -> str:
    """The text of a trace, every row of which can be used; TraceError if not."""
    for _ in rows(text, source):
        pass
    return text


def rows(text: str, source: str = "trace", scale: float = 1.0) -> Iterator[Row]:
    """The rows of a trace one after another, in the order of their arrival, which a scale brings
    closer together or farther apart.
    """
    reader = csv.reader(io.StringIO(text), strict=True)
    last = 0.0
    try:
        columns = _columns(next(reader, []), source)
        for number, cells in enumerate(reader):
            place = f"{source}:{reader.line_num}"
            if not any(cells):
                continue
            if number >= MOST_ROWS:
                raise TraceError(f"{place}: more than {MOST_ROWS} rows")
            row = _row(columns, cells, place)
            if row.arrival < last:
                raise TraceError(f"{place}: arrival: earlier than the row before it")
            last = row.arrival
            yield row if scale == 1 else replace(row, arrival=row.arrival * scale)
    except csv.Error as problem:
        raise TraceError(f"{source}:{reader.line_num}: not CSV: {problem}") from None


def _columns(names: list[str], source: str) -> list[str]:
    found = [name.strip() for name in names]
    for name in found:
        if name not in READERS:
            raise TraceError(f"{source}:1: {no_such('column', name[:60], READERS)}")
        if found.count(name) > 1:
            raise TraceError(f"{source}:1: column {name!r} is there twice")
    if "arrival" not in found:
        raise TraceError(f"{source}:1: there is no column 'arrival'")
    return found


def _row(columns: list[str], cells: list[str], place: str) -> Row:
    if len(cells) > len(columns):
        raise TraceError(f"{place}: {len(cells)} cells for {len(columns)} columns")
    said = {}
    for column, cell in zip(columns, cells, strict=False):
        text = cell.strip()
        if len(text) > _LONGEST_CELL:
            raise TraceError(f"{place}: {column}: longer than {_LONGEST_CELL} letters")
        if text:
            said[column] = text
    try:
        return row_of(said)
    except CellError as problem:
        raise TraceError(f"{place}: {problem}") from None
