"""A group of tests runs on one worker, and a run that splits one fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[1]
SUITE = """
import pytest

@pytest.mark.xdist_group("shared")
@pytest.mark.parametrize("one", range(12))
def test_shared(one):
    pass
"""


def run_on_two_workers(folder: Path, distribution: str) -> subprocess.CompletedProcess[str]:
    """Run a suite with one group, with the pytest and the plugins of this one."""
    (folder / "test_suite.py").write_text(SUITE)
    options = ("-n2", "--dist", distribution, "-p", "tests.groups", "-p", "no:cacheprovider")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", folder, folder],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_tests_of_a_group_run_on_one_worker(tmp_path: Path) -> None:
    done = run_on_two_workers(tmp_path, "loadgroup")
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "12 passed" in done.stdout


def test_a_run_that_splits_a_group_fails_and_names_it(tmp_path: Path) -> None:
    done = run_on_two_workers(tmp_path, "load")
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "FAILED xdist_group 'shared' ran on gw0, gw1" in done.stdout
