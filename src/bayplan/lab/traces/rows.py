"""A line of a trace, when some pods came and what they asked for; and reading them from CSV.

| column | what it says | if left out or empty |
|---|---|---|
| `arrival` | when: `90s`, `1h30m`, or seconds from the start | it must be there |
| `duration` | how long each pod runs | until the end |
| `cpu`, `memory` | what each pod asks for, as quantities | nothing |
| `requests` | further resources: `nvidia.com/gpu=1`, several with `;` | none |
| `replicas` | how many pods | 1 |
| `gang` | how many of them must start together | any one can start |
| `claims` | volumes of each pod: `2`, `10Gi`, `2*disks:10Gi`, several with `;` | none |
| `queue` | the queue, whose quota the pods wait for | none |
| `priority` | a whole number | 0 |
| `nodeSelector` | `zone=a`, several with `;` | any node |
| `name` | what the pods are called | `trace` |
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bayplan.base.durations import DurationError, parse_duration
from bayplan.base.suggestions import no_such
from bayplan.kube.names import is_label_value, is_qualified_name, is_subdomain
from bayplan.kube.quantity import QuantityError, parse

MOST_REPLICAS = 10_000
MOST_CLAIMS = 100
CLAIM_SIZE = "10Gi"
_CLAIM = re.compile(
    r"(?:(?P<count>\d{1,4})\*)?(?:(?P<class>[a-z0-9][-a-z0-9.]*):)?(?P<size>[\w.]+)"
)
_LONGEST_NAME = 40


@dataclass(frozen=True, slots=True)
class Claim:
    """Volumes of one size and class, for each pod; an empty class is the default one."""

    count: int
    size: str
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """Pods that came together."""

    arrival: float
    duration: float | None = None
    requests: tuple[tuple[str, str], ...] = ()
    replicas: int = 1
    gang: int = 0
    claims: tuple[Claim, ...] = ()
    queue: str = ""
    priority: int = 0
    node_selector: tuple[tuple[str, str], ...] = ()
    name: str = "trace"


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        return parse_duration(text)
    if not 0 <= found < 1e9:
        raise ValueError(f"{text!r} is no number of seconds")
    return found


def _count(text: str, least: int = 1) -> int:
    if not text.isdecimal() or not least <= int(text) <= MOST_REPLICAS:
        raise ValueError(f"{text[:40]!r} is no whole number from {least} to {MOST_REPLICAS}")
    return int(text)


def _quantity(text: str) -> str:
    if parse(text) < 0:
        raise ValueError(f"{text} is less than nothing")
    return text


def _priority(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,10}", text) or abs(int(text)) > 1_000_000_000:
        raise ValueError(f"{text[:40]!r} is no whole number up to a billion")
    return int(text)


def _pairs(text: str, is_value: Callable[[str], bool]) -> tuple[tuple[str, str], ...]:
    found = []
    for part in filter(None, (one.strip() for one in text.split(";"))):
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not is_qualified_name(key) or not is_value(value):
            raise ValueError(f"{part[:60]!r} is not written as name=value")
        found.append((key, value))
    return tuple(found)


def _is_quantity(text: str) -> bool:
    try:
        return parse(text) >= 0
    except QuantityError:
        return False


def _claims(text: str) -> tuple[Claim, ...]:
    if text.isdecimal():
        return (Claim(_claim_count(text), CLAIM_SIZE),) if int(text) else ()
    found = []
    for part in filter(None, (one.strip() for one in text.split(";"))):
        match = _CLAIM.fullmatch(part)
        if match is None or not _is_quantity(match["size"]):
            raise ValueError(f"{part[:60]!r} is no claim such as 2*disks:10Gi")
        count = _claim_count(match["count"] or "1")
        found.append(Claim(count, match["size"], match["class"] or ""))
    return tuple(found)


def _claim_count(text: str) -> int:
    if len(text) > 4 or int(text) > MOST_CLAIMS:
        raise ValueError(f"{text[:40]} are more than {MOST_CLAIMS} volumes of a pod")
    return int(text)


def _name(text: str) -> str:
    if len(text) > _LONGEST_NAME or not is_subdomain(text) or "." in text:
        raise ValueError(f"{text[:60]!r} cannot be the beginning of a pod's name")
    return text


def _queue(text: str) -> str:
    if not is_subdomain(text):
        raise ValueError(f"{text[:60]!r} cannot be a queue's name")
    return text


READERS: Mapping[str, Callable[[str], object]] = {
    "arrival": _seconds,
    "duration": _seconds,
    "cpu": _quantity,
    "memory": _quantity,
    "requests": lambda text: _pairs(text, _is_quantity),
    "replicas": _count,
    "gang": _count,
    "claims": _claims,
    "queue": _queue,
    "priority": _priority,
    "nodeSelector": lambda text: _pairs(text, is_label_value),
    "name": _name,
}
"""How the text of each column is read; ValueError says what is wrong with it."""


class CellError(ValueError):
    """A cell that cannot be read."""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"{column}: {problem}")


def row_of(cells: Mapping[str, str]) -> Row:
    """A row from its cells, those that are empty left out; CellError names the column."""
    found = {column: _read(column, text) for column, text in cells.items()}
    if "arrival" not in found:
        raise CellError("arrival", "is empty")
    requests = [(name, found.pop(name)) for name in ("cpu", "memory") if name in found]
    requests += found.pop("requests", ())  # type: ignore[arg-type]
    if "nodeSelector" in found:
        found["node_selector"] = found.pop("nodeSelector")
    made = Row(requests=tuple(requests), **found)  # type: ignore[arg-type]
    if made.gang > made.replicas:
        raise CellError("gang", f"{made.gang} of {made.replicas} replicas cannot start together")
    return made


def _read(column: str, text: str) -> object:
    try:
        return READERS[column](text)
    except (ValueError, DurationError, QuantityError) as problem:
        raise CellError(column, str(problem)) from None


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
