"""Paths of files, as they stand in volumes and mounts."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.validation.causes import bad_value


def backstep_problems(path: str, at: str) -> list[Cause]:
    """A path never goes up."""
    return [bad_value(at, path, "must not contain '..'")] if ".." in path.split("/") else []


def descending_problems(path: str, at: str) -> list[Cause]:
    """A path that leads down from somewhere."""
    found = [bad_value(at, path, "must be a relative path")] if path.startswith("/") else []
    return found + backstep_problems(path, at)


def local_path_problems(path: str, at: str) -> list[Cause]:
    """A path inside a volume whose own files begin with two dots."""
    found = descending_problems(path, at)
    if path.startswith("..") and not path.startswith("../"):
        found.append(bad_value(at, path, "must not start with '..'"))
    return found
