"""A wheel that works alone: an empty environment, an empty home and no sources beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import bayplan
from tests.packaging.empty_home import INSTALLING, EmptyHome

pytestmark = [pytest.mark.whole, pytest.mark.xdist_group("image"), pytest.mark.timeout(INSTALLING)]


def test_it_says_its_version_and_its_commands(image: EmptyHome, programs: Path) -> None:
    assert image.run(programs / "bayplan", "--version").strip() == bayplan.__version__
    assert "explain" in image.run(programs / "bayplan", "--help")
    assert "explain" in image.run(programs / "kubectl-bayplan", "--help")
    assert image.run(programs / "kubectl_complete-bayplan", "vol").split() == ["volumes", ":0"]


HELP = """
import sys
from bayplan.cli.main import run
for command in sys.argv[1:]:
    print("---", command, flush=True)
    run([command, "--help"])
"""


def test_every_command_helps_without_what_only_tests_have(image: EmptyHome, programs: Path) -> None:
    commands = image.run(programs / "kubectl_complete-bayplan", "").split()[:-1]
    assert len(commands) > 20
    helped = image.run(programs / "python", "-c", HELP, *commands)
    for command in commands:
        assert f"--- {command}\nUsage: bayplan" in helped
    assert image.left_in_home() == []


def test_it_tells_its_stories_and_leaves_nothing_behind(image: EmptyHome, programs: Path) -> None:
    temporary = image.folder / "temporary"
    temporary.mkdir()
    told = image.run("env", f"TMPDIR={temporary}", programs / "bayplan", "demo", "--story", "1")
    assert "3 nodes added" in told
    assert list(temporary.iterdir()) == []


def test_it_prints_what_runs_it_in_a_cluster(image: EmptyHome, programs: Path) -> None:
    printed = image.run(programs / "bayplan", "manifests")
    assert "kind: Deployment" in printed
    assert "kind: CustomResourceDefinition" in printed


TABLES = """
from bayplan.kube.attachtables import read_table
for name in ("aws-ebs", "azure-disk", "gce-pd"):
    print(len(read_table(name, dict)) > 2)
"""


def test_it_has_the_tables_of_attach_limits(image: EmptyHome, programs: Path) -> None:
    assert image.run(programs / "python", "-c", TABLES).split() == ["True"] * 3
