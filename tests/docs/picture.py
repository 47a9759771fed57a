"""The picture of the README: story 2 in virtual time, with its gate on and off, side by side."""

from __future__ import annotations

import html
import io
import re
from pathlib import Path

from rich import box
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.columns import Columns
from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from tests.docs.outputs import printed

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "no-driver-here.svg"
COMMAND = (
    "up -f examples/stories/2-no-driver-here.yaml --virtual --for 10m --with scheduler,autoscaler"
)
_OFF = " --feature-gates VolumeLimitScaling=false"
_SHOWN = ("nodes", "pods", "volumes", "warnings")
_FONTS = re.compile(r"@font-face \{\{.*?\}\}\n", re.DOTALL)
"""They would be fetched from somebody else."""


def picture() -> str:
    """The picture, as SVG."""
    on, off = (_figures(printed(f"{COMMAND}{gates}")[0]) for gates in ("", _OFF))
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    console.print(_scene(on, off))
    template = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace("Fira Code, ", "")
    return console.export_svg(title="bayplan", code_format=template, unique_id="story")


def words(svg: str) -> list[str]:
    """What can be read in a picture, however it is drawn."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", svg)
    return html.unescape(" ".join(texts)).replace("\N{NO-BREAK SPACE}", " ").split()


def _figures(report: str) -> dict[str, str]:
    lines = (line.partition(" ") for line in report.splitlines())
    return {name: text.strip() for name, _, text in lines if name in _SHOWN}


def _scene(on: dict[str, str], off: dict[str, str]) -> Group:
    said = "Twenty pods with a volume each, six without; nodes of one group have no CSI driver."
    return Group(
        Text(f"$ bayplan {COMMAND}", style="bold"),
        Text(said, style="dim"),
        Columns(
            [
                _panel("VolumeLimitScaling on", on, "green"),
                _panel("VolumeLimitScaling off, as before", off, "red"),
            ]
        ),
    )


def _panel(title: str, figures: dict[str, str], colour: str) -> Panel:
    table = Table(box=None, show_header=False, padding=(0, 1))
    for name in _SHOWN:
        table.add_row(name, Text(figures[name], style=colour))
    return Panel(table, title=title, width=50, border_style=colour, box=box.ROUNDED)
