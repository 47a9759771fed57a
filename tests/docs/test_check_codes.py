"""The page of `bayplan check` has every code."""

from __future__ import annotations

from tests.docs.check_codes import PAGE, page_with_codes


def test_the_page_has_every_code() -> None:
    page = PAGE.read_text()
    assert page == page_with_codes(page), "run `make docs`"
