"""The Containerfile's steps, and a folder in which those of its first stage have been done.

The folder stands for the image's root; COPY takes what .containerignore lets in, RUN runs.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.packaging.empty_home import ROOT, EmptyHome

LET_IN = {"LICENSE", "README.md", "pyproject.toml", "requirements", "src"}


@dataclass(slots=True)
class Stage:
    """What follows one FROM."""

    base: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [rest for step, rest in self.steps if step == word]


def steps() -> Iterator[tuple[str, str]]:
    text = re.sub(r"\\\n\s*", "", (ROOT / "Containerfile").read_text())
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, rest = line.split(" ", 1)
            yield word, rest


def stages() -> list[Stage]:
    found: list[Stage] = []
    for word, rest in steps():
        if word == "FROM":
            found.append(Stage(rest))
        elif found:
            found[-1].steps.append((word, rest))
    return found


def build(place: EmptyHome) -> None:
    """Do all steps of the first stage."""
    (first, _) = stages()
    for word, rest in first.steps:
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                _copy(ROOT / source, place.folder / target / Path(source).name, source == target)
        elif word == "RUN":
            place.run("sh", "-ec", _command(rest, place.folder))


def _command(text: str, root: Path) -> str:
    """A RUN step with the folder's paths, and the Python that runs the tests."""
    command = re.sub(r"(?<![\w.])(/opt/|/dist)", rf"{root}\1", text)
    return re.sub(r"^python ", f"{sys.executable} ", command)


def _copy(source: Path, target: Path, same: bool) -> None:
    assert source.relative_to(ROOT).parts[0] in LET_IN
    if source.is_dir():
        place = target.parent if same else target
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
