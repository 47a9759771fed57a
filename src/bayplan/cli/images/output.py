"""How answers are shown: columns for people, JSON and YAML for programs, colours on a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Literal

import yaml
from cyclopts import Parameter
from rich.console import Console

from bayplan.images.runtime.objects import FilesystemUsage, Image

Format = Annotated[Literal["table", "json", "yaml"], Parameter(name=["--output", "-o"])]
_GAP = "   "
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def complain(message: str) -> None:
    """Tell of a failure, on standard error."""
    console = Console(stderr=True)
    console.print(f"error: {message}", style="red", highlight=False, markup=False, soft_wrap=True)


def warn(message: str) -> None:
    """Tell of something to be done, on standard error."""
    console = Console(stderr=True)
    text = f"warning: {message}"
    console.print(text, style="yellow", highlight=False, markup=False, soft_wrap=True)


def say(line: str, style: str | None = None) -> None:
    """Print one line as it is, however long."""
    Console().print(line, style=style, highlight=False, markup=False, soft_wrap=True)


def show_data(data: object, form: str) -> None:
    """Print data for a program."""
    if form == "json":
        say(json.dumps(data, indent=2))
    else:
        say(yaml.safe_dump(data, sort_keys=False, allow_unicode=True).rstrip())


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns, each as wide as it has to be."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    say(_line(header, widths), "bold")
    for row in rows:
        say(_line(row, widths))


def human_size(size: int) -> str:
    """A size in decimal units, as crictl writes it.

    >>> human_size(4_261_550)
    '4.26MB'
    """
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{value:.3g}{_UNITS[unit]}" if unit else f"{size}B"


def image_data(image: Image) -> dict[str, object]:
    """An image as the CRI's JSON has it."""
    return {
        "id": image.id,
        "repoTags": list(image.tags),
        "repoDigests": list(image.digests),
        "size": str(image.size),
        "uid": None if image.uid is None else {"value": str(image.uid)},
        "username": image.username,
        "spec": {"image": "", "annotations": {}, "runtimeHandler": image.handler},
        "pinned": image.pinned,
    }


def filesystem_data(usage: FilesystemUsage) -> dict[str, object]:
    """A filesystem as the CRI's JSON has it."""
    return {
        "timestamp": str(usage.timestamp_ns),
        "fsId": {"mountpoint": usage.mountpoint},
        "usedBytes": {"value": str(usage.used_bytes)},
        "inodesUsed": {"value": str(usage.inodes_used)},
    }


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return _GAP.join(padded).rstrip()
