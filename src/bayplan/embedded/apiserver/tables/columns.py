"""A column: its name, and how its cell is read from an object."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from importlib import resources

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.tables.values import age

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
        """The column as the Table of a kind describes it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description or described(storage, self.name),
            "priority": self.priority,
        }


def described(storage: str, name: str) -> str:
    """What a column of a kind is about, as `kubectl` could explain it."""
    known = _descriptions()
    return known.get((storage, name)) or known.get(("*", name), "")


@cache
def _descriptions() -> dict[tuple[str, str], str]:
    """By kind and column, from the file beside this module; `*` stands for any kind."""
    found: dict[tuple[str, str], str] = {}
    storage = ""
    text = resources.files(__package__).joinpath("descriptions.txt").read_text("utf-8")
    for line in text.splitlines():
        if line.startswith(" "):
            name, _, told = line[1:].partition("\t")
            found[storage, name] = json.loads(f'"{told}"')
        else:
            storage = line
    return found


def column(
    name: str, read: Callable[[JsonObject], JsonValue], *, wide: bool = False, type_: str = "string"
) -> Column:
    """A column that needs only the object."""
    return Column(name, lambda obj, _: read(obj), type_, priority=1 if wide else 0)


NAME = Column("Name", lambda obj, _: obj["metadata"].get("name", ""), format="name")
AGE = Column("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now))
