"""The `bayplan` command: a list of commands, each imported only when it is called.

Exit codes are the same everywhere: 0 is "yes" (it fits, it worked), 1 is "no" (it does not fit, it
failed), 2 is "the question was wrong" (bad arguments or bad input), 130 is Ctrl-C.
"""

from __future__ import annotations

import sys

from cyclopts import App, CycloptsError
from rich.console import Console

import bayplan
from bayplan.cli.errors import EXIT_BAD_INPUT, EXIT_INTERRUPTED, BadInput

COMMANDS: dict[str, str] = {
    "explain": "bayplan.cli.explain:explain",
    "volumes": "bayplan.cli.volumes:volumes",
    "cri": "bayplan.cli.cri:cri",
}
"""Command name → where its function (or its sub-App) lives."""
SUMMARIES: dict[str, str] = {
    "explain": "Say where a pod would go and why, or why nowhere and what would help.",
    "volumes": "Show how many volumes each node has attached, how many it can, and who says so.",
    "cri": "Serve images per runtime handler on a CRI socket.",
}
"""What `bayplan --help` says of a command, since it does not import it."""


def build_app() -> App:
    """The command line, with every command registered but none imported."""
    app = App(
        name="bayplan",
        help="Decide what fits in a Kubernetes cluster, and say why.",
        version=bayplan.__version__,
        result_action="return_value",
    )
    for name, target in COMMANDS.items():
        app.command(target, name=name, help=SUMMARIES.get(name))
    return app


def run(arguments: list[str] | None = None) -> int:
    """Run one command line; returns its exit code."""
    errors = Console(stderr=True)
    try:
        result = build_app()(arguments, exit_on_error=False, error_console=errors)
    except CycloptsError:
        return EXIT_BAD_INPUT
    except BadInput as problem:
        errors.print(
            f"error: {problem}", style="red", highlight=False, markup=False, soft_wrap=True
        )
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return result if isinstance(result, int) else 0


def main() -> None:
    """Entry point of the installed command."""
    sys.exit(run())
