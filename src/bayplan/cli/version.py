"""`bayplan version`: the version, and the Python, platform and commit behind it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

import bayplan
from bayplan.cli.errors import EXIT_OK
from bayplan.cli.text.output import Format, emit, printable

if TYPE_CHECKING:
    from bayplan.base.values import JsonObject

COMMIT, DATE = "BAYPLAN_COMMIT", "BAYPLAN_COMMIT_DATE"
"""Environment variables that an image sets, since it contains no repository."""
_GIT_SECONDS = 5.0


def version(
    *,
    output: Annotated[Literal["text", "json", "yaml"], Parameter(("--output", "-o"))] = "text",
) -> int:
    """Print the version of Bayplan and of Python, the platform, and the commit if it is known.

    The commit is known in a clone of the repository, in an image that was built with it, and after
    an installation from a repository. `bayplan --version` prints the version alone.

    Exit codes: 0 it was printed, 2 bad input.

    Parameters
    ----------
    output
        The output format.
    """
    data = version_data()
    if output == "text":
        sys.stdout.writelines(f"{_line(name, value)}\n" for name, value in data.items())
    else:
        emit(data, Format(output))
    return EXIT_OK


def version_data() -> JsonObject:
    """Return what is printed; commit and date are None if they are unknown."""
    commit = find_commit()
    return {
        "version": bayplan.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system()} {platform.machine()}".lower(),
        "commit": commit.id or None,
        "date": commit.date or None,
    }


def _line(name: str, value: object) -> str:
    return f"{name}: {'unknown' if value is None else printable(str(value))}"


@dataclass(frozen=True, slots=True)
class Commit:
    """The commit that the code is from; empty if unknown."""

    id: str = ""
    date: str = ""


def find_commit(folder: Path = Path(bayplan.__file__).parent) -> Commit:
    """Return the commit of the environment, of the clone around a folder, or of the package."""
    if os.environ.get(COMMIT):
        return Commit(os.environ[COMMIT], os.environ.get(DATE, ""))
    return _cloned(folder) or _installed() or Commit()


def _cloned(folder: Path) -> Commit | None:
    """Return the last commit of the clone if `folder` is its src/bayplan."""
    top = folder.parents[1]
    if folder.parent.name != "src" or not (top / ".git").exists():
        return None
    command = ["git", "-C", str(top), "log", "-1", "--format=%H %cI"]
    try:
        found = subprocess.run(  # noqa: S603 - no input of others
            command, capture_output=True, text=True, timeout=_GIT_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    commit, _, date = found.stdout.strip().partition(" ")
    return Commit(commit, date)


def _installed() -> Commit | None:
    """Return the commit that pip recorded for an installation from a repository (PEP 610)."""
    try:
        text = distribution("bayplan").read_text("direct_url.json")
        recorded = json.loads(text or "{}").get("vcs_info", {}).get("commit_id")
    except (PackageNotFoundError, ValueError, AttributeError):
        return None
    return Commit(recorded) if isinstance(recorded, str) else None
