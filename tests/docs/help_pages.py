"""The help of every command, as its page in docs/commands has it below what is written by hand."""

from __future__ import annotations

import io
from pathlib import Path

from cyclopts import App
from rich.console import Console

from bayplan.cli.main import COMMANDS, SUMMARIES, build_app

FOLDER = Path(__file__).parents[2] / "docs" / "commands"
INDEX = FOLDER / "index.md"
BEGIN = "<!-- what follows is written by `make docs` -->"
_WIDTH = 100


def pages() -> dict[Path, list[str]]:
    """Each command's page, and the words by which its command is called; the index has none."""
    return {INDEX: []} | {FOLDER / f"{name}.md": [name] for name in sorted(COMMANDS)}


def page_with_help(path: Path, words: list[str]) -> str:
    """The page with its generated part renewed; a command without a page gets one."""
    written = path.read_text() if path.exists() else _new_page(words[0])
    by_hand, marker, _ = written.partition(BEGIN)
    if not marker:
        raise ValueError(f"{path} has no line {BEGIN}")
    sections = "\n".join(_section(inner) for inner in _called(words))
    return f"{by_hand}{BEGIN}\n\n{sections if words else _table() + sections}"


def _new_page(name: str) -> str:
    return f"# `bayplan {name}`\n\n{SUMMARIES[name]}\n\n{BEGIN}\n"


def _called(words: list[str]) -> list[list[str]]:
    """The command itself, and the commands that it has of its own."""
    app = build_app()
    inner = sorted(app[words[0]]) if words else []
    return [words, *([*words, name] for name in inner if _is_command(app[words[0]], name))]


def _is_command(app: App, name: str) -> bool:
    return not name.startswith("-") and name in app


def _table() -> str:
    rows = "".join(f"| [`{name}`]({name}.md) | {SUMMARIES[name]} |\n" for name in sorted(COMMANDS))
    return f"## Commands\n\n| command | what it does |\n|---|---|\n{rows}\n"


def _section(words: list[str]) -> str:
    title = " ".join(["bayplan", *words, "--help"])
    return f"## `{title}`\n\n```text\n{_help(words)}\n```\n"


def _help(words: list[str]) -> str:
    text = io.StringIO()
    console = Console(file=text, width=_WIDTH, color_system=None, force_terminal=False)
    build_app(*words[:1]).help_print(words, console=console)
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())
