"""Whatever the Makefile runs is there."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

MAKEFILE = (Path(__file__).parents[1] / "Makefile").read_text()
OURS = sorted(set(re.findall(r"python -m ((?:tests|bench)[\w.]*)", MAKEFILE)))
FILES = sorted(set(re.findall(r"\btests/[\w/]+\.py", MAKEFILE)))


def test_it_runs_modules_and_files_of_ours() -> None:
    assert OURS
    assert FILES


@pytest.mark.parametrize("module", OURS)
def test_a_module_that_is_run_can_be_run(module: str) -> None:
    assert find_spec(f"{module}.__main__") is not None


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_is_named_is_there(file: str) -> None:
    assert (Path(__file__).parents[1] / file).is_file()
