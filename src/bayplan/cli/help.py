"""`bayplan help`: the help of a command, as `bayplan COMMAND --help` prints it."""

from __future__ import annotations

from typing import Literal

from bayplan.base.suggestions import no_such
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.main import build_app, program_name
from bayplan.cli.text.output import printable

CommandName = Literal[
    "apiserver",
    "autoscaler",
    "check",
    "cloud",
    "completion",
    "cri",
    "demo",
    "dump",
    "explain",
    "help",
    "images",
    "manifests",
    "node-agent",
    "plan",
    "queues",
    "record",
    "scheduler",
    "simulate",
    "ui",
    "up",
    "version",
    "volumes",
    "webhook",
]
"""All commands, so that shells complete them."""


def show_help(command: CommandName | None = None, subcommand: str = "", /) -> int:
    """Print the help of a command; without one, the list of commands.

    The same as `--help`: `bayplan help plan`, `bayplan help images pull`.

    Exit codes: 0 it was printed, 2 there is no such command.

    Parameters
    ----------
    command
        The command.
    subcommand
        One of its own commands, such as pull of images.
    """
    app = build_app(command or "", program_name())
    words = [word for word in (command, subcommand) if word]
    if command and subcommand:
        known = [name for name in app[command] if not name.startswith("-")]
        if not known:
            raise BadInput(f"{command} has no subcommands: {printable(subcommand[:80])}")
        if subcommand not in known:
            raise BadInput(no_such(f"command {command}", subcommand[:80], known))
    app.help_print(words)
    return EXIT_OK
