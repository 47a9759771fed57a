"""The page of `bayplan check` has every code."""

from __future__ import annotations

import pytest

from tests.docs.check_codes import PAGE, page_with_codes

pytestmark = pytest.mark.whole


def test_the_page_has_every_code() -> None:
    page = PAGE.read_text()
    assert page == page_with_codes(page), "run `make docs`"
