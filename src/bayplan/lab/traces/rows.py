"""The rows of a trace: when pods are created and what they request; and their parser.

| column | meaning | default |
|---|---|---|
| `arrival` | when: `90s`, `1h30m`, or seconds from the start | required |
| `duration` | how long each pod runs | until the end |
| `cpu`, `memory` | requests of each pod, as quantities | none |
| `requests` | further resources: `nvidia.com/gpu=1`, several with `;` | none |
| `replicas` | number of pods | 1 |
| `gang` | number of pods that must start together | none |
| `claims` | volumes of each pod: `2`, `10Gi`, `2*disks:10Gi`, several with `;` | none |
| `queue` | the queue whose quota the pods need | none |
| `priority` | a whole number | 0 |
| `nodeSelector` | `zone=a`, several with `;` | any node |
| `name` | name of the pods | `trace` |
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

MAX_REPLICAS = 10_000
MAX_CLAIMS = 100
CLAIM_SIZE = "10Gi"
_CLAIM = re.compile(
    r"(?:(?P<count>\d{1,4})\*)?(?:(?P<class>[a-z0-9][-a-z0-9.]*):)?(?P<size>[\w.]+)"
)
_MAX_NAME_LENGTH = 40


@dataclass(frozen=True, slots=True)
class TraceClaim:
    """Claims of each pod of one size and storage class; an empty class is the default one."""

    count: int
    size: str
    storage_class: str = ""


@dataclass(frozen=True, slots=True)
class TraceRow:
    """Pods that are created together."""

    arrival: float
    duration: float | None = None
    requests: tuple[tuple[str, str], ...] = ()
    replicas: int = 1
    gang: int = 0
    claims: tuple[TraceClaim, ...] = ()
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
        raise ValueError(f"{text!r} is not a number of seconds")
    return found


def _count(text: str, least: int = 1) -> int:
    if not text.isdecimal() or not least <= int(text) <= MAX_REPLICAS:
        raise ValueError(f"{text[:40]!r} is not a whole number from {least} to {MAX_REPLICAS}")
    return int(text)


def _quantity(text: str) -> str:
    if parse(text) < 0:
        raise ValueError(f"{text} is negative")
    return text


def _priority(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,10}", text) or abs(int(text)) > 1_000_000_000:
        raise ValueError(f"{text[:40]!r} is not a whole number up to a billion")
    return int(text)


def _pairs(text: str, is_value: Callable[[str], bool]) -> tuple[tuple[str, str], ...]:
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
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


def _claims(text: str) -> tuple[TraceClaim, ...]:
    if text.isdecimal():
        return (TraceClaim(_claim_count(text), CLAIM_SIZE),) if int(text) else ()
    found = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        match = _CLAIM.fullmatch(part)
        if match is None or not _is_quantity(match["size"]):
            raise ValueError(f"{part[:60]!r} is not a claim such as 2*disks:10Gi")
        count = _claim_count(match["count"] or "1")
        found.append(TraceClaim(count, match["size"], match["class"] or ""))
    return tuple(found)


def _claim_count(text: str) -> int:
    if len(text) > 4 or int(text) > MAX_CLAIMS:
        raise ValueError(f"{text[:40]} is more than {MAX_CLAIMS} volumes for a pod")
    return int(text)


def _name(text: str) -> str:
    if len(text) > _MAX_NAME_LENGTH or not is_subdomain(text) or "." in text:
        raise ValueError(f"{text[:60]!r} cannot be the prefix of a pod name")
    return text


def _queue(text: str) -> str:
    if not is_subdomain(text):
        raise ValueError(f"{text[:60]!r} is not a valid queue name")
    return text


PARSERS: Mapping[str, Callable[[str], object]] = {
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
"""The parser of each column; it raises ValueError for an invalid cell."""


class CellError(ValueError):
    """An invalid cell."""

    def __init__(self, column: str, problem: str) -> None:
        super().__init__(f"{column}: {problem}")


def parse_row(cells: Mapping[str, str]) -> TraceRow:
    """Parse a row from its cells without the empty ones; raise CellError with the column."""
    found = {column: _read(column, text) for column, text in cells.items()}
    if "arrival" not in found:
        raise CellError("arrival", "is empty")
    requests = [(name, found.pop(name)) for name in ("cpu", "memory") if name in found]
    requests += found.pop("requests", ())  # type: ignore[arg-type]
    if "nodeSelector" in found:
        found["node_selector"] = found.pop("nodeSelector")
    made = TraceRow(requests=tuple(requests), **found)  # type: ignore[arg-type]
    if made.gang > made.replicas:
        raise CellError("gang", f"{made.gang} of {made.replicas} replicas cannot start together")
    return made


def _read(column: str, text: str) -> object:
    try:
        return PARSERS[column](text)
    except (ValueError, DurationError, QuantityError) as problem:
        raise CellError(column, str(problem)) from None


MAX_BYTES = 64 << 20
MAX_ROWS = 1_000_000
_MAX_CELL_LENGTH = 1000


class TraceError(ValueError):
    """An invalid trace: the place and the reason."""


def read_trace(path: Path) -> str:
    """Read a trace; raise TraceError if it is not valid."""
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
    return validate_trace(text, str(path))


def validate_trace(text: str, source: str = "trace") -> str:
    """Return the text of a trace; raise TraceError if a row is not valid."""
    for _ in parse_rows(text, source):
        pass
    return text


def parse_rows(text: str, source: str = "trace", scale: float = 1.0) -> Iterator[TraceRow]:
    """Yield the rows of a trace in the order of their arrival, multiplied by the scale."""
    reader = csv.reader(io.StringIO(text), strict=True)
    last = 0.0
    try:
        columns = _columns(next(reader, []), source)
        for number, cells in enumerate(reader):
            place = f"{source}:{reader.line_num}"
            if not any(cells):
                continue
            if number >= MAX_ROWS:
                raise TraceError(f"{place}: more than {MAX_ROWS} rows")
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
        if name not in PARSERS:
            raise TraceError(f"{source}:1: {no_such('column', name[:60], PARSERS)}")
        if found.count(name) > 1:
            raise TraceError(f"{source}:1: duplicate column {name!r}")
    if "arrival" not in found:
        raise TraceError(f"{source}:1: no column 'arrival'")
    return found


def _row(columns: list[str], cells: list[str], place: str) -> TraceRow:
    if len(cells) > len(columns):
        raise TraceError(f"{place}: {len(cells)} cells for {len(columns)} columns")
    found = {}
    for column, cell in zip(columns, cells, strict=False):
        text = cell.strip()
        if len(text) > _MAX_CELL_LENGTH:
            raise TraceError(f"{place}: {column}: longer than {_MAX_CELL_LENGTH} characters")
        if text:
            found[column] = text
    try:
        return parse_row(found)
    except CellError as problem:
        raise TraceError(f"{place}: {problem}") from None
