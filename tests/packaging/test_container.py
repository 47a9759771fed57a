"""The Containerfile, as far as it can be tried without an engine: its own steps, in a folder.

The folder stands for the image's root; COPY takes what .containerignore lets in, RUN runs.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import bayplan
from bayplan.deploy.components import DAEMONS
from tests.deploy.made import made
from tests.packaging.fresh import ROOT, Place

pytestmark = pytest.mark.xdist_group("image")  # it is built once
LET_IN = {"LICENSE", "README.md", "pyproject.toml", "requirements", "src"}
MADE = ("/opt/", "/dist")
"""What belongs to the image and not to this machine."""


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


def test_the_image_runs_as_nobody_and_has_only_what_runs() -> None:
    build, last = stages()
    assert build.base == "${PYTHON} AS build"
    assert last.base == "${PYTHON}"
    assert not last.all("RUN")
    assert last.all("COPY") == ["--from=build /opt/bayplan /opt/bayplan"]
    (user,) = last.all("USER")
    (entry,) = last.all("ENTRYPOINT")
    assert entry == '["bayplan"]'
    contexts = {
        (one["securityContext"]["runAsUser"], one["securityContext"]["runAsGroup"])
        for workload in made(*(one.component for one in DAEMONS if not one.root))
        if workload["kind"] == "Deployment"
        for one in workload["spec"]["template"]["spec"]["containers"]
    }
    assert {f"{who}:{group}" for who, group in contexts} == {user}
    (base,) = [rest for word, rest in steps() if word == "ARG"]
    assert re.fullmatch(r"PYTHON=python:3\.\d+-slim-\w+", base)


def test_what_is_installed_is_locked_by_hash() -> None:
    (build, _) = stages()
    installs = [one for one in build.all("RUN") if "pip install" in one]
    assert len(installs) == 3
    for one in installs:
        assert "--require-hashes" in one or "--no-deps --no-index" in one
    ignored = (ROOT / ".containerignore").read_text().split()
    assert {one[1:] for one in ignored if one.startswith("!")} == LET_IN
    # Docker reads another file.
    assert (ROOT / ".dockerignore").read_text().split() == ignored


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The folder after all steps of the first stage."""
    place = Place(tmp_path_factory.mktemp("image"))
    root = place.folder
    (build, _) = stages()
    for word, rest in build.steps:
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                _copy(ROOT / source, root / target / Path(source).name, source == target)
        elif word == "RUN":
            command = re.sub(r"(?<![\w.])(/opt/|/dist)", rf"{root}\1", rest)
            command = re.sub(r"^python ", f"{sys.executable} ", command)
            place.run("sh", "-ec", command)
    return place


def _copy(source: Path, target: Path, same: bool) -> None:
    assert source.relative_to(ROOT).parts[0] in LET_IN
    if source.is_dir():
        place = target.parent if same else target
        shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def test_what_is_built_runs_and_writes_nothing(image: Place) -> None:
    program = image.folder / "opt/bayplan/bin/bayplan"
    before = _files(image.folder / "opt/bayplan")
    image.environment["PYTHONDONTWRITEBYTECODE"] = "1"
    assert image.run(program, "--version").strip() == bayplan.__version__
    assert "kind: Deployment" in image.run(program, "manifests")
    for command in ("scheduler", "autoscaler", "webhook", "node-agent"):
        assert image.run(program, command, "--help").startswith(f"Usage: bayplan {command}")
    assert _files(image.folder / "opt/bayplan") == before
    assert image.left_in_home() == []


def test_nothing_is_in_it_that_only_builds_or_tests(image: Place) -> None:
    (packages,) = (image.folder / "opt/bayplan/lib").glob("python*/site-packages")
    names = {one.name.partition("-")[0].lower() for one in packages.glob("*.dist-info")}
    assert "bayplan" in names
    assert not names & {"pip", "setuptools", "hatchling", "pytest", "hypothesis", "mypy", "boto3"}


def _files(folder: Path) -> set[tuple[str, int]]:
    return {(str(one), one.stat().st_mtime_ns) for one in folder.rglob("*") if one.is_file()}
