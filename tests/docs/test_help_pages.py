"""docs/cli.md says what the commands say."""

from __future__ import annotations

from tests.docs.help_pages import PAGE, page_with_help


def test_the_page_has_the_help_of_every_command() -> None:
    page = PAGE.read_text()
    assert page == page_with_help(page), "run `make docs`"
