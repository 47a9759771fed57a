"""A test that takes long has one line at the end of a run."""

from __future__ import annotations

import pytest

from tests.durations import describe


@pytest.mark.parametrize(
    ("processor", "line"),
    [
        (31.0, "SLOW test_it: 31 s"),
        (20.0, "SLOW test_it: 31 s"),
        (1.0, "SLOW test_it: waits 30 of 31 s"),
        (40.0, "SLOW test_it: 31 s"),  # on two cores
    ],
)
def test_a_slow_test_says_how_long_it_took_and_whether_it_waited(
    processor: float, line: str
) -> None:
    assert describe("test_it", 31.0, processor) == line
