"""Pages whose commands are run: what stands below each `$ bayplan …` is what it prints."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from pathlib import Path

from bayplan.cli.main import run

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "docs" / "clusters.md", ROOT / "docs" / "check.md")
_BLOCK = re.compile(r"```console\n(.*?)```\n", re.DOTALL)
_COMMAND = re.compile(r"\$ bayplan (.*?)(; echo \$\?)?")


def page_with_outputs(page: str) -> str:
    """The page with the output of its commands renewed."""
    return _BLOCK.sub(lambda block: f"```console\n{_ran(block[1])}```\n", page)


def _ran(block: str) -> str:
    commands = [line for line in block.splitlines() if line.startswith("$ ")]
    return "".join(f"{line}\n{_output(line)}" for line in commands)


def _output(line: str) -> str:
    found = _COMMAND.fullmatch(line)
    if found is None:
        raise ValueError(f"not a command of ours: {line}")
    text, code = printed(found[1])
    return text + (f"{code}\n" if found[2] else "")


def printed(command: str) -> tuple[str, int]:
    """What a command of ours prints at the top of the repository, and its exit code."""
    here, text = Path.cwd(), io.StringIO()
    os.chdir(ROOT)
    try:
        with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
            code = run(shlex.split(command))
    finally:
        os.chdir(here)
    return text.getvalue(), code
