"""The reference says what the types and the registries say."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bayplan.deploy.artifacts import CHART
from tests.deploy.manifests import DEPLOY
from tests.docs import migration, reference
from tests.docs.flags import DAEMONS, arguments, help_text
from tests.docs.reference import page_with_reference

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    return reference.pages() | migration.pages()


def test_each_page_is_what_the_types_say(pages: dict[Path, str]) -> None:
    for page, generated in pages.items():
        assert page.read_text() == page_with_reference(page, generated), f"{page}: run `make docs`"


@pytest.mark.parametrize("command", DAEMONS)
def test_every_flag_of_a_daemon_is_in_the_reference_and_explained(
    command: str, pages: dict[Path, str]
) -> None:
    everywhere = "".join(page.read_text() for page in pages)
    for one in arguments(command):
        assert help_text(one), one.names
        assert f"| `{one.names[0]}`" in everywhere


@pytest.mark.parametrize("page", ["webhook", "node-agent", "containerd", "values"])
def test_no_flag_field_or_value_is_without_a_word(page: str) -> None:
    rows = [line for line in (reference.FOLDER / f"{page}.md").read_text().splitlines()
            if line.startswith(("| `", "| **"))]  # fmt: skip
    assert len(rows) > 10
    assert not [row for row in rows if row.split(" | ")[-1].strip("| ") == ""]


def test_every_value_of_the_chart_has_its_row() -> None:
    page = (reference.FOLDER / "values.md").read_text()
    usual = yaml.safe_load((DEPLOY / CHART / "values.yaml").read_text())
    paths = [f"{section}.{name}" for section, held in usual.items() if isinstance(held, dict)
             for name in held]  # fmt: skip
    assert len(paths) > 40
    assert not [path for path in (*paths, *usual) if f"`{path}`" not in page]


def test_every_flag_and_metric_people_come_from_is_the_same_or_explained() -> None:
    assert {"cluster-autoscaler", "kube-scheduler", "volcano"} == set(migration.upstreams())
    for one in migration.upstreams().values():
        assert len(one.flags) > 30
        assert len(one.metrics) > 30


def test_a_name_that_is_neither_or_both_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing is said"):
        migration.here(["odd"], set(), [])
    with pytest.raises(ValueError, match="nothing"):
        migration.here(["odd"], {"odd"}, [migration.Instead("nothing", ["o*"])])
