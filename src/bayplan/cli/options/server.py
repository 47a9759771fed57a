"""Options of commands that run an API server: users, authorization, and the kubeconfig."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from bayplan.cli.errors import BadInput
from bayplan.embedded.apiserver.identity import check_kubeconfig_path


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class AuthOptions:
    """Authentication and authorization of an API server."""

    tokens: Path | None = None
    """A file of additional users: CSV lines of token,user,uid,"group1,group2"."""
    authorization: Annotated[Literal["rbac", "always-allow"], Parameter(show_choices=True)] = (
        "always-allow"
    )
    """The authorization mode: RBAC, or allow every request."""


@contextlib.contextmanager
def kubeconfig_place(wanted: Path | None) -> Iterator[Path]:
    """Yield the path for a temporary kubeconfig; it and new folders are removed afterwards."""
    if wanted is None:
        with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
            yield Path(folder, "kubeconfig")
        return
    new = [one for one in wanted.absolute().parents if not one.exists()]
    try:
        try:
            check_kubeconfig_path(wanted)
        except OSError as problem:
            raise BadInput(f"--kubeconfig {problem}") from problem
        try:
            yield wanted
        finally:
            wanted.unlink(missing_ok=True)
    finally:
        _remove_empty(new)


def _remove_empty(folders: Iterable[Path]) -> None:
    """Remove folders, the inner ones first; those that are not empty are kept."""
    with contextlib.suppress(OSError):
        for one in folders:
            one.rmdir()
