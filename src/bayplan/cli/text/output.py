"""Output of commands: tables as text, JSON and YAML for programs.

Colours and wrapping are used only on a terminal: a pipe gets one line per row, however long.
Control characters in a cluster's data are escaped, so that they cannot control the terminal.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import yaml
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject, JsonValue

_ENDLESS = 100_000
"""The width if the output is not a terminal, so that nothing is wrapped."""


class Format(Enum):
    """An output format."""

    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"

    @property
    def is_for_people(self) -> bool:
        """Whether it is a text format."""
        return self in {Format.table, Format.wide}


def show(blocks: Iterable[RenderableType]) -> None:
    """Print blocks on standard output; without wrapping and padding if it is not a terminal."""
    console = Console(file=sys.stdout, highlight=False, markup=False)
    if console.is_terminal:
        for block in blocks:
            console.print(block, soft_wrap=isinstance(block, Text) and bool(block.no_wrap))
        return
    console.width = _ENDLESS
    with console.capture() as captured:
        for block in blocks:
            console.print(block)
    sys.stdout.writelines(f"{line.rstrip()}\n" for line in captured.get().splitlines())
    sys.stdout.flush()  # daemons go on, and what they print is waited for


def is_read_by_people() -> bool:
    """Return whether standard output is a terminal."""
    return sys.stdout.isatty()


def indented(block: RenderableType) -> RenderableType:
    """Return an indented block."""
    return Padding(block, (0, 0, 0, 2), expand=False)


def hanging(mark: str, text: Text) -> Table:
    """Return text beside a mark, with a hanging indent."""
    shown = Table.grid(padding=(0, 1, 0, 0))
    shown.add_column(min_width=2)
    shown.add_column(overflow="fold")
    shown.add_row(mark, text)
    return shown


def unwrapped(text: Text) -> Text:
    """Return a line to copy: no line break is printed in it."""
    text.no_wrap = True
    return text


def counted(count: int, thing: str) -> str:
    """`1 pod`, `2 pods`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def notices() -> Console:
    """Return the console of standard error."""
    return Console(stderr=True, highlight=False, markup=False, soft_wrap=True)


def printable(text: str) -> str:
    """Return the text with control characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def table(headings: Sequence[str], rows: Sequence[Sequence[str | Text]]) -> Table:
    """Return a table without lines; long words are wrapped, not truncated."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in headings:
        shown.add_column(heading, overflow="fold")
    for row in rows:
        shown.add_row(*(cell if isinstance(cell, Text) else Text(printable(cell)) for cell in row))
    return shown


def emit(data: JsonValue, style: Format) -> None:
    """Print data as JSON or YAML."""
    sys.stdout.write(_json(data) + "\n" if style is Format.json else _yaml(data))


def emit_many(head: JsonObject, name: str, many: Iterable[JsonValue], style: Format) -> None:
    """Print data that ends in a long list under this name, item by item, to save memory."""
    if style is Format.json:
        sys.stdout.write(_json({**head, name: []}).removesuffix("]\n}"))
        separator = "\n    "
        for one in many:
            sys.stdout.write(separator + _json(one).replace("\n", "\n    "))
            separator = ",\n    "
        sys.stdout.write("]\n}\n" if separator[0] == "\n" else "\n  ]\n}\n")
        return
    sys.stdout.write(_yaml(head) + f"{name}:")
    begin = "\n"
    for one in many:
        sys.stdout.write(begin + _yaml([one]))
        begin = ""
    sys.stdout.write(" []\n" if begin else "")


def _json(data: JsonValue) -> str:
    return json.dumps(data, indent=2)


def _yaml(data: JsonValue) -> str:
    text: str = yaml.dump(data, Dumper=yaml.CSafeDumper, sort_keys=False)
    return text
