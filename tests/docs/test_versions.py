"""Pages name the versions that the code and the recorded decisions are of."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import bayplan
from bayplan.fit.profile import KUBERNETES_VERSION
from tests.docs import migration

ROOT = Path(__file__).parents[2]
FOLLOWED = {one.of.split(" (")[0] for one in migration.upstreams().values()}


def _page(name: str) -> str:
    return (ROOT / name).read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "docs/limits.md"])
def test_a_page_names_the_version_of_kubernetes(page: str) -> None:
    assert KUBERNETES_VERSION in _page(page)


@pytest.mark.parametrize("program", sorted(FOLLOWED))
def test_what_is_followed_is_named_with_its_version(program: str) -> None:
    name, version = program.rsplit(" ", 1)
    assert re.search(
        rf"^\| {name}\b.* \| {re.escape(version)} \|", _page("docs/limits.md"), re.MULTILINE
    )
    assert version in _page("README.md")


def test_the_version_of_ours_is_the_same_everywhere() -> None:
    project = tomllib.loads(_page("pyproject.toml"))["project"]
    assert project["version"] == bayplan.__version__
    assert f"## [{bayplan.__version__}]" in _page("CHANGELOG.md")
    images = re.findall(r"registry\.example\.com/bayplan:([\w.]+)", _page("docs/install.md"))
    assert {bayplan.__version__} == set(images)
