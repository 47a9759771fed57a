"""The small part of JSONPath that printer columns use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue

_STEP = re.compile(
    r"\.(?P<name>(?:\\.|[^.\[\]\\])+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<all>\*)\]"
    r"|\['(?P<quoted>[^']+)'\]"
    r"|\[\?\(@\.(?P<key>[\w.]+)\s*==\s*[\"'](?P<value>[^\"']*)[\"']\)\]"
)


class Step(NamedTuple):
    """One step of a path: a name, an index, all, or those whose key has a value."""

    name: str | None = None
    place: int | None = None
    key: str | None = None
    value: str = ""


@lru_cache(1024)
def parse(path: str) -> tuple[Step, ...]:
    """A path's steps; an unreadable rest is ignored."""
    return tuple(_step(found) for found in _STEP.finditer(path.strip("{}")))


def _step(found: re.Match[str]) -> Step:
    name = found["name"] or found["quoted"]
    if name is not None:
        return Step(name=re.sub(r"\\(.)", r"\1", name))
    if found["index"] is not None:
        return Step(place=int(found["index"]))
    return Step(key=found["key"], value=found["value"] or "")


def read(obj: JsonObject, path: str) -> JsonValue:
    """The value at a path: the first of several, None if there is none."""
    return next(_walk(obj, parse(path)), None)


def _walk(value: JsonValue, steps: tuple[Step, ...]) -> Iterator[JsonValue]:
    if not steps:
        yield value
        return
    for inner in _children(value, steps[0]):
        yield from _walk(inner, steps[1:])


def _children(value: JsonValue, step: Step) -> list[JsonValue]:
    if step.name is not None:
        return [value[step.name]] if isinstance(value, dict) and step.name in value else []
    if not isinstance(value, list):
        return []
    if step.place is not None:
        return value[step.place : step.place + 1 or None]
    if step.key is None:
        return value
    return [one for one in value if isinstance(one, dict) and one.get(step.key) == step.value]
