"""Every story has a page with its words; what it prints is compared where commands are run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.stories import FOLDER, pages, words

pytestmark = pytest.mark.whole


PAGES = pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_tells_its_story(page: Path) -> None:
    assert page.read_text().startswith(words(PAGES[page])), "run `make docs`"


def test_the_index_names_every_story() -> None:
    index = (FOLDER / "index.md").read_text()
    assert not [page for page in PAGES if f"]({page.name})" not in index]
