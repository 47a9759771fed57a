"""The page's sources: their unit tests pass, and what is checked in is what they build to."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
STATIC = ROOT / "src/bayplan/ui/static"

pytestmark = [
    pytest.mark.whole,
    pytest.mark.skipif(
        shutil.which("npm") is None, reason="cannot be shown here without Node and npm"
    ),
    pytest.mark.skipif(
        not (WEB / "node_modules/.package-lock.json").exists(),
        reason="the packages that web/package-lock.json locks are not installed: make test does",
    ),
]


def run(*command: str) -> str:
    done = subprocess.run(
        command, cwd=WEB, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_unit_tests_of_the_page_pass() -> None:
    said = run("node", "test.mjs")
    assert "# fail 0" in said
    assert "# pass 0" not in said


def test_the_page_that_is_checked_in_is_what_its_sources_build_to(tmp_path: Path) -> None:
    run("node", "build.mjs", str(tmp_path))
    assert contents(tmp_path) == contents(STATIC)


def contents(under: Path) -> dict[str, bytes]:
    files = [path for path in sorted(under.rglob("*")) if path.is_file()]
    return {str(path.relative_to(under)): path.read_bytes() for path in files}


def test_the_lock_file_names_no_host_to_download_from() -> None:
    lock = (WEB / "package-lock.json").read_text()
    assert '"integrity"' in lock
    assert '"resolved"' not in lock
