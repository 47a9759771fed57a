"""A wheel that works alone: an empty environment, an empty home and no sources beside it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bayplan
from tests.packaging.fresh import ROOT, Place

pytestmark = pytest.mark.xdist_group("wheel")  # it is installed once


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An environment with the wheel and what is locked for running it."""
    return Place(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(place: Place) -> Path:
    """The folder with the installed commands."""
    wheels = place.folder / "dist"
    built = f"import os, sys; os.chdir({str(ROOT)!r}); from hatchling.build import build_wheel;"
    place.run(
        sys.executable, "-c", f"{built} os.makedirs({str(wheels)!r}); build_wheel({str(wheels)!r})"
    )
    (wheel,) = wheels.glob("*.whl")
    place.run(sys.executable, "-m", "venv", "environment")
    pip = (place.folder / "environment/bin/python", "-m", "pip", "install", "--quiet")
    place.run(*pip, "--require-hashes", "-r", ROOT / "requirements/runtime.lock")
    place.run(*pip, "--no-deps", wheel)
    return place.folder / "environment/bin"


def test_it_says_its_version_and_its_commands(place: Place, programs: Path) -> None:
    assert place.run(programs / "bayplan", "--version").strip() == bayplan.__version__
    assert "explain" in place.run(programs / "bayplan", "--help")
    assert "explain" in place.run(programs / "kubectl-bayplan", "--help")
    assert place.run(programs / "kubectl_complete-bayplan", "vol").split() == ["volumes", ":0"]


def test_every_command_helps_without_what_only_tests_have(place: Place, programs: Path) -> None:
    commands = place.run(programs / "kubectl_complete-bayplan", "").split()[:-1]
    for command in commands:
        assert place.run(programs / "bayplan", command, "--help").startswith("Usage: bayplan")
    assert place.left_in_home() == []


def test_it_tells_its_stories_and_leaves_nothing_behind(place: Place, programs: Path) -> None:
    temporary = place.folder / "temporary"
    temporary.mkdir()
    told = place.run("env", f"TMPDIR={temporary}", programs / "bayplan", "demo", "--story", "1")
    assert "3 nodes bought" in told
    assert list(temporary.iterdir()) == []


def test_it_prints_what_runs_it_in_a_cluster(place: Place, programs: Path) -> None:
    printed = place.run(programs / "bayplan", "manifests")
    assert "kind: Deployment" in printed
    assert "kind: CustomResourceDefinition" in printed
