"""A column: its name, and how its cell is read from an object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

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

    def definition(self) -> JsonObject:
        """The column as a Table describes it."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


def column(
    name: str, read: Callable[[JsonObject], JsonValue], *, wide: bool = False, type_: str = "string"
) -> Column:
    """A column that needs only the object."""
    return Column(name, lambda obj, _: read(obj), type_, priority=1 if wide else 0)


NAME = Column(
    "Name", lambda obj, _: obj["metadata"].get("name", ""), format="name", description="Its name."
)
AGE = Column("Age", lambda obj, now: age(obj["metadata"].get("creationTimestamp"), now))
