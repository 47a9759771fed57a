"""`bayplan completion`: shell completion of our command lines.

Bash, zsh and fish get a script, generated from the commands' signatures. kubectl completes its
plugins differently: for `kubectl bayplan …` it runs `kubectl_complete-bayplan` with the words typed
so far, and reads one candidate per line and finally a completion directive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Literal

from cyclopts import App

from bayplan.cli.errors import EXIT_OK
from bayplan.cli.main import build_app

Shell = Literal["bash", "zsh", "fish"]
_NO_FILES = ":4"
_FILES = ":0"
"""kubectl's directives: no file names, and file names if there are no candidates."""


def completion(shell: Shell, /) -> int:
    """Print a completion script for a shell.

    To try it in bash: `source <(bayplan completion bash)`. `kubectl bayplan` is completed by
    kubectl's own completion and needs no script.

    Exit codes: 0 it was printed, 2 bad input.

    Parameters
    ----------
    shell
        The shell: bash, zsh or fish.
    """
    sys.stdout.write(build_app().generate_completion(shell=shell))
    return EXIT_OK


def kubectl_complete() -> None:
    """Entry point of `kubectl_complete-bayplan`."""
    sys.stdout.write("\n".join([*candidates(sys.argv[1:]), ""]))


def candidates(words: Sequence[str]) -> Iterator[str]:
    """Yield the candidates for the last word, then kubectl's directive."""
    *before, typed = words or [""]
    app = _reached(build_app(), before)
    options = typed.startswith("-")
    found = _options(app) if options else _commands(app)
    yield from sorted(one for one in found if one.startswith(typed))
    yield _NO_FILES if options else _FILES


def _reached(app: App, words: Sequence[str]) -> App:
    """Return the command that the words name; after `help` come the words of another command."""
    for word in words[1:] if words[:1] == ["help"] else words:
        if not word.startswith("-") and word in _commands(app):
            app = app[word]
    return app


def _commands(app: App) -> list[str]:
    return [name for name in app if not name.startswith("-")]


def _options(app: App) -> list[str]:
    taken = ["--help"]
    if app.default_command is not None:
        taken += [name for one in app.assemble_argument_collection() for name in one.names]
    return [name for name in taken if name.startswith("-")]
