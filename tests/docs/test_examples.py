"""The examples in the documentation run, and end as they say."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

import pytest

from bayplan.cli.options.cluster import KINDS
from bayplan.kube.gates import DEFAULTS

pytestmark = pytest.mark.whole


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_examples_in_pages_run(page: Path) -> None:
    here = Path.cwd()
    os.chdir(ROOT)
    try:
        failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS)
    finally:
        os.chdir(here)
    assert not failed


def test_the_room_has_examples() -> None:
    found = doctest.DocTestParser().get_examples((ROOT / "docs" / "fit.md").read_text())
    assert len(found) > 10


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_pages_name_every_kind_and_gate() -> None:
    assert KINDS in (ROOT / "docs" / "commands" / "index.md").read_text()
    fit = (ROOT / "docs" / "fit.md").read_text()
    assert all(
        name in fit for name in DEFAULTS if name in {"VolumeLimitScaling", "AttachVolumeLimit"}
    )
