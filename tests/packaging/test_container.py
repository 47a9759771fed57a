"""The Containerfile, as far as it can be tried without an engine: its own steps, in a folder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import bayplan
from bayplan.deploy.components import DAEMONS
from tests.deploy.manifests import made
from tests.packaging.containerfile import LET_IN, stages, steps
from tests.packaging.empty_home import INSTALLING, ROOT, EmptyHome

pytestmark = [
    pytest.mark.whole,
    pytest.mark.xdist_group("image"),
    pytest.mark.timeout(INSTALLING),
]  # it is built once


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
    (base, *commit) = [rest for word, rest in steps() if word == "ARG"]
    assert commit == ["COMMIT=", "COMMIT_DATE="]
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


def test_what_is_built_runs_and_writes_nothing(image: EmptyHome, programs: Path) -> None:
    program = programs / "bayplan"
    before = _files(image.folder / "opt/bayplan")
    assert image.run(program, "--version").strip() == bayplan.__version__
    assert "kind: Deployment" in image.run(program, "manifests")
    for command in ("scheduler", "autoscaler", "webhook", "node-agent"):
        assert image.run(program, command, "--help").startswith(f"Usage: bayplan {command}")
    assert _files(image.folder / "opt/bayplan") == before
    assert image.left_in_home() == []


def test_nothing_is_in_it_that_only_builds_or_tests(image: EmptyHome) -> None:
    (packages,) = (image.folder / "opt/bayplan/lib").glob("python*/site-packages")
    names = {one.name.partition("-")[0].lower() for one in packages.glob("*.dist-info")}
    assert "bayplan" in names
    assert not names & {"pip", "setuptools", "hatchling", "pytest", "hypothesis", "mypy", "boto3"}


def _files(folder: Path) -> set[tuple[str, int]]:
    return {(str(one), one.stat().st_mtime_ns) for one in folder.rglob("*") if one.is_file()}
