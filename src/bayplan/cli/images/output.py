"""Output of image commands: tables as text, and the CRI's JSON format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.text import Text

from bayplan.base.values import JsonValue
from bayplan.cli.text.output import Format as Style
from bayplan.cli.text.output import emit, notices, printable, show, table
from bayplan.images.runtime.objects import FilesystemUsage, Image

Format = Annotated[Literal["table", "json", "yaml"], Parameter(name=["--output", "-o"])]
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


def complain(message: str) -> None:
    """Print an error on standard error."""
    notices().print(f"error: {printable(message)}", style="red")


def warn(message: str) -> None:
    """Print a warning on standard error."""
    notices().print(f"warning: {printable(message)}", style="yellow")


def say(line: str) -> None:
    """Print one line."""
    show([Text(printable(line))])


def show_data(data: JsonValue, form: str) -> None:
    """Print data as JSON or YAML."""
    emit(data, Style(form))


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table."""
    show([table(header, rows)])


def human_size(size: int) -> str:
    """Return a size in decimal units, in crictl's format.

    >>> human_size(4_261_550)
    '4.26MB'
    """
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    return f"{value:.3g}{_UNITS[unit]}" if unit else f"{size}B"


def shown_handler(handler: str, default: str) -> str:
    """Return a handler's name; for the default handler its name if known."""
    return handler or default or "(default)"


def image_data(image: Image) -> dict[str, JsonValue]:
    """Return an image in the CRI's JSON format."""
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


def filesystem_data(usage: FilesystemUsage) -> dict[str, JsonValue]:
    """Return a filesystem in the CRI's JSON format."""
    return {
        "timestamp": str(usage.timestamp_ns),
        "fsId": {"mountpoint": usage.mountpoint},
        "usedBytes": {"value": str(usage.used_bytes)},
        "inodesUsed": {"value": str(usage.inodes_used)},
    }
