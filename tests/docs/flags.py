"""The flags of a command as a reference has them, from the command's own parser."""

from __future__ import annotations

import typing
from collections.abc import Iterator

from bayplan.cli.main import build_app
from tests.docs.types import words

DAEMONS = ("scheduler", "autoscaler", "webhook", "node-agent", "cri")


def flags(command: str, shown: str = "") -> str:
    """A section with a row for each flag that is not shown already."""
    rows = "".join(_row(one) for one in arguments(command) if f"`{one.names[0]}`" not in shown)
    head = "| flag | type | default | |\n|---|---|---|---|\n"
    return f"## `bayplan {command}`\n\n{head}{rows}"


def arguments(command: str) -> Iterator[typing.Any]:
    """What can be said on the command line, without groups of options, whose parts come as well."""
    found = build_app(command)[command].assemble_argument_collection(parse_docstring=True)
    yield from (one for one in found if one.show and one.names[0].startswith("--"))


def help_text(argument: typing.Any) -> str:
    """What is said of a flag."""
    return " ".join(str(argument.parameter.help or "").split()).replace("|", "\\|")


def _row(argument: typing.Any) -> str:
    names = ", ".join(f"`{name}`" for name in argument.names if not name.startswith("--no-"))
    return f"| {names} | {words(argument.hint)} | {_default(argument)} | {help_text(argument)} |\n"


def _default(argument: typing.Any) -> str:
    value = argument.field_info.default
    if argument.required:
        return "required"
    if value is argument.field_info.empty or value in (None, "", (), []):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
