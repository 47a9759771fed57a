"""A column of a table: its name, its cell, and JSON paths."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue

NONE = "<none>"


def parse_time(text: JsonValue) -> datetime | None:
    """Return a timestamp, or None if it is invalid."""
    if not isinstance(text, str):
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def age(since: JsonValue, now: datetime) -> str:
    """Return the age as kubectl prints it: 5s, 3m20s, 4h, 12d."""
    moment = parse_time(since)
    if moment is None:
        return "<unknown>"
    seconds = int((now - moment).total_seconds())
    return duration(seconds) if seconds >= 0 else "0s"


def duration(seconds: int) -> str:
    """Return a duration in at most two units."""
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    steps = (
        (seconds < 120, f"{seconds}s"),
        (minutes < 10, _pair(minutes, "m", seconds % 60, "s")),
        (minutes < 180, f"{minutes}m"),
        (hours < 8, _pair(hours, "h", minutes % 60, "m")),
        (hours < 48, f"{hours}h"),
        (hours < 192, _pair(days, "d", hours % 24, "h")),
        (days < 730, f"{days}d"),
        (days < 2920, _pair(days // 365, "y", days % 365, "d")),
    )
    return next((text for fits, text in steps if fits), f"{days // 365}y")


def _pair(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def joined(values: Iterable[JsonValue]) -> str:
    """Return values joined by commas."""
    return ",".join(str(value) for value in values) or NONE


def labels(selector: JsonObject | None) -> str:
    """Return a selector or labels as `a=b,c=d`."""
    selector = selector or {}
    pairs = selector.get("matchLabels", {} if "matchExpressions" in selector else selector) or {}
    return joined(f"{key}={value}" for key, value in pairs.items())


def template_images(obj: JsonObject) -> tuple[str, str]:
    """Return the names and the images of a workload's containers."""
    pod = ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
    containers = pod.get("containers") or []
    return (
        joined(one.get("name", "") for one in containers),
        joined(one.get("image", "") for one in containers),
    )


Cell = Callable[[JsonObject, datetime], JsonValue]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    cell: Cell
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self, storage: str = "") -> JsonObject:
        """Return the column definition for a Table of a kind."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or described(storage, self.name),
            "priority": self.priority,
        }


def described(storage: str, name: str) -> str:
    """Return the description of a column of a kind."""
    known = _descriptions()
    return known.get((storage, name)) or known.get(("*", name), "")


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    """Read the descriptions by kind and column; `*` stands for any kind."""
    found: dict[tuple[str, str], str] = {}
    storage = ""
    text = resources.files(__package__).joinpath("descriptions.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith(" "):
            name, _, message = line[1:].partition("\t")
            found[storage, name] = json.loads(f'"{message}"')
        else:
            storage = line
    return found


def column(
    name: str, read: Callable[[JsonObject], JsonValue], *, wide: bool = False, type_: str = "string"
) -> Column:
    """Return a column whose cell needs only the object."""
    return Column(name, lambda obj, _: read(obj), type_, priority=1 if wide else 0)


NAME = Column("Name", lambda obj, _: obj["metadata"].get("name", ""), format="name")
AGE = Column("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now))


_STEP = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\]\\])+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<all>\*)\]"
    r"|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\(@\.(?P<key>[\w.]+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]"
)


class JsonPathStep(NamedTuple):
    """One step of a JSON path: a name, an index, all, or a filter."""

    name: str | None = None
    place: int | None = None
    key: str | None = None
    value: str = ""


@lru_cache(1024)
def parse(path: str) -> tuple[JsonPathStep, ...]:
    """Return a path's steps; an invalid rest is ignored."""
    return tuple(_step(found) for found in _STEP.finditer(path.strip("{}")))


def _step(found: re.Match[str]) -> JsonPathStep:
    name = found["name"] or found["quoted"]
    if name is not None:
        return JsonPathStep(name=re.sub(r"\\(.)", r"\1", name))
    if found["index"] is not None:
        return JsonPathStep(place=int(found["index"]))
    return JsonPathStep(key=found["key"], value=found["value"] or "")


def read(obj: JsonObject, path: str) -> JsonValue:
    """Return the value at a path: the first of several, or None."""
    return next(_walk(obj, parse(path)), None)


def _walk(value: JsonValue, steps: tuple[JsonPathStep, ...]) -> Iterator[JsonValue]:
    if not steps:
        yield value
        return
    for inner in _children(value, steps[0]):
        yield from _walk(inner, steps[1:])


def _children(value: JsonValue, step: JsonPathStep) -> list[JsonValue]:
    if step.name is not None:
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if not isinstance(value, list):
        return []
    if step.place is not None:
        return value[step.place : step.place + 1 or None]
    if step.key is None:
        return value
    return [one for one in value if isinstance(one, dict) and one.get(step.key) == step.value]
