"""Cells are written as kubectl writes them."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.tables.columns import duration


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0s"),
        (119, "119s"),
        (120, "2m"),
        (200, "3m20s"),
        (3 * 3600, "3h"),
        (5 * 3600 + 60, "5h1m"),
        (40 * 3600, "40h"),
        (3 * 86400, "3d"),
        (400 * 86400, "400d"),
        (800 * 86400, "2y70d"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(seconds: int, shown: str) -> None:
    assert duration(seconds) == shown
