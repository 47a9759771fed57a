"""Every command line in the documentation is run, and prints what the page shows."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest

from tests.docs.consoles import ROOT, Step, every_page, is_shown, not_run_lines, pages, steps
from tests.docs.outputs import PAGES as IN_PROCESS
from tests.docs.shell import reader

pytestmark = pytest.mark.whole


class NotRun(msgspec.Struct, forbid_unknown_fields=True):
    """A command line that cannot run in a test, and why."""

    page: str
    command: str
    reason: str


NOT_RUN = msgspec.yaml.decode(
    (Path(__file__).parent / "not_run.yaml").read_bytes(), type=list[NotRun]
)
_RUN = [page for page in pages() if page not in IN_PROCESS]


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def _is_run(page: Path, step: Step) -> bool:
    return not any(left.page == _name(page) and left.command == step.command for left in NOT_RUN)


@pytest.mark.parametrize("page", _RUN, ids=_name)
def test_the_command_lines_of_a_page_do_what_it_shows(page: Path, tmp_path: Path) -> None:
    run = [step for step in steps(page.read_text()) if _is_run(page, step)]
    if any("kubectl" in step.command for step in run) and not shutil.which("kubectl"):
        pytest.skip("kubectl is not installed")
    folder = tmp_path / "bayplan"
    folder.mkdir()
    with reader(folder) as shell:
        for step in run:
            shell.run(step)


@pytest.mark.parametrize("left", NOT_RUN, ids=lambda left: left.command[:40])
def test_what_is_not_run_stands_in_its_page_and_can_be_read_by_a_shell(left: NotRun) -> None:
    assert left.command in [step.command for step in steps((ROOT / left.page).read_text())]
    assert left.reason
    subprocess.run(["bash", "-n", "-c", left.command], check=True)


def test_every_command_line_stands_in_a_console_block() -> None:
    """Elsewhere nobody would run it; help, outputs and Python are not meant to be typed."""
    for page in every_page():
        for line in not_run_lines(page.read_text()):
            typed = re.match(r"(bayplan|kubectl|make|helm|pip|python3?) ", line)
            assert typed is None or "NAME" in line, f"{_name(page)}: {line}"


def test_little_is_not_run() -> None:
    assert len(NOT_RUN) <= 12


@pytest.mark.parametrize(
    ("shown", "printed", "whole"),
    [
        (("a  b",), "a b\n", True),
        (("a", "…", "c"), "a\nb\nb\nc\n", True),
        (("a …, c",), "a b, c\n", True),
        (("leads",), "2026-01-01T00:00:00.1Z INFO leads\nmore\n", False),
        (("serving https://127.0.0.1:1", "c"), "x\nserving https://127.0.0.1:2\nb\nc\n", False),
    ],
)
def test_what_is_shown(shown: tuple[str, ...], printed: str, whole: bool) -> None:
    assert is_shown(shown, printed, whole=whole)


@pytest.mark.parametrize(
    ("shown", "printed", "whole"),
    [
        (("a",), "a\nb\n", True),
        (("a", "b"), "a\n", True),
        (("a…c",), "a\nc\n", True),
        (("leads",), "2026-01-01T00:00:00.1Z INFO waits\n", False),
    ],
)
def test_what_is_not_shown(shown: tuple[str, ...], printed: str, whole: bool) -> None:
    assert not is_shown(shown, printed, whole=whole)
