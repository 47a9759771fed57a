"""A clone on a machine where nobody has worked before: the README's two commands work at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.packaging.empty_home import INSTALLING, EmptyHome, copy_sources

pytestmark = [pytest.mark.whole, pytest.mark.timeout(INSTALLING)]


def test_a_clone_shows_its_demo_and_then_tests_itself(tmp_path: Path, long: bool) -> None:
    """Every run of the whole suite begins with `make test`; that it works beside is a long test."""
    place = EmptyHome(tmp_path)
    copy_sources(tmp_path)
    shown = place.run("make", "demo", *([] if long else ["DEMO_ARGS=--story 5"]))
    assert f"Story {8 if long else 5} of 8" in shown
    installed = place.run(".venv/bin/python", "-m", "pip", "list")
    assert "hypothesis" not in installed  # the demo needs only what runs
    if long:
        tested = place.run("make", "test", "PYTEST_ARGS=-q tests/kube/test_gates.py")
        assert " passed" in tested
    assert place.left_in_home() == []
