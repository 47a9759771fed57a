"""Pages show what their commands print."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.outputs import PAGES, page_with_outputs

pytestmark = pytest.mark.whole


CLUSTERS = Path(__file__).parents[2] / "examples" / "clusters"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_shows_what_its_commands_print(page: Path) -> None:
    text = page.read_text()
    assert text == page_with_outputs(text), "run `make docs`"


def test_every_kind_of_cluster_is_asked_about() -> None:
    page = PAGES[0].read_text()
    for cluster in CLUSTERS.iterdir():
        assert f"-f examples/clusters/{cluster.name}" in page
