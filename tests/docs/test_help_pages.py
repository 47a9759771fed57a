"""Every command has a page that says what the command says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.help_pages import BEGIN, FOLDER, page_with_help, pages

pytestmark = pytest.mark.whole


@pytest.mark.parametrize(("page", "words"), pages().items(), ids=[page.stem for page in pages()])
def test_the_page_has_the_help_of_its_command(page: Path, words: list[str]) -> None:
    assert page.exists(), "run `make docs`"
    assert page.read_text() == page_with_help(page, words), "run `make docs`"


def test_every_page_is_a_command_s() -> None:
    assert set(FOLDER.iterdir()) == set(pages())


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_the_page_begins_with_an_introduction(page: Path) -> None:
    written = page.read_text().partition(BEGIN)[0]
    assert "](" in written, "say where more is to be read"
