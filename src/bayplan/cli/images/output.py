"""How answers about images are shown: rows for people, the CRI's own JSON for programs."""

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
    """Tell of a failure, on standard error."""
    notices().print(f"error: {printable(message)}", style="red")


def warn(message: str) -> None:
    """Tell of something to be done, on standard error."""
    notices().print(f"warning: {printable(message)}", style="yellow")


def say(line: str) -> None:
    """Print one line."""
    show([Text(printable(line))])


def show_data(data: JsonValue, form: str) -> None:
    """Print data for a program."""
    emit(data, Style(form))


def show_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns."""
    show([table(header, rows)])


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


def shown_handler(handler: str, default: str) -> str:
    """A handler's name; the default one's, if the runtime tells it."""
    return handler or default or "(default)"


def image_data(image: Image) -> dict[str, JsonValue]:
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


def filesystem_data(usage: FilesystemUsage) -> dict[str, JsonValue]:
    """A filesystem as the CRI's JSON has it."""
    return {
        "timestamp": str(usage.timestamp_ns),
        "fsId": {"mountpoint": usage.mountpoint},
        "usedBytes": {"value": str(usage.used_bytes)},
        "inodesUsed": {"value": str(usage.inodes_used)},
    }
