"""The picture of the README shows what a run gives today."""

from __future__ import annotations

import pytest

from tests.docs.picture import PICTURE, picture, words

pytestmark = pytest.mark.whole


def test_the_picture_says_what_a_run_gives() -> None:
    shown = PICTURE.read_text()
    assert words(shown) == words(picture()), "run `make docs`"
    assert "http" not in shown.replace("http://www.w3.org/2000/svg", "").replace(
        "https://www.textualize.io", ""
    )
