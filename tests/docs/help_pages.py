"""The help of every command, as docs/cli.md has it."""

from __future__ import annotations

import io
from pathlib import Path

from cyclopts import App
from rich.console import Console

from bayplan.cli.main import COMMANDS, build_app

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
BEGIN = "<!-- what follows is written by `make docs` -->"


def page_with_help(page: str) -> str:
    """The page with its generated part renewed."""
    written, marker, _ = page.partition(BEGIN)
    if not marker:
        raise ValueError(f"{PAGE} has no line {BEGIN}")
    sections = "\n".join(_section(words) for words in _commands())
    return f"{written}{BEGIN}\n\n{sections}"


def _commands() -> list[list[str]]:
    """The command itself, each command, and the commands of those that have their own."""
    app = build_app()
    found: list[list[str]] = [[]]
    for name in sorted(COMMANDS):
        found.append([name])
        found += [[name, inner] for inner in sorted(app[name]) if _is_command(app[name], inner)]
    return found


def _is_command(app: App, name: str) -> bool:
    return not name.startswith("-") and name in app


def _section(words: list[str]) -> str:
    title = " ".join(["bayplan", *words])
    return f"## `{title}`\n\n```text\n{_help(words)}\n```\n"


def _help(words: list[str]) -> str:
    text = io.StringIO()
    console = Console(file=text, width=80, color_system=None, force_terminal=False)
    build_app(*words[:1]).help_print(words, console=console)
    return "\n".join(line.rstrip() for line in text.getvalue().strip().splitlines())
