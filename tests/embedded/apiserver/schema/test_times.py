"""Times are written in UTC."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.schema import times


@pytest.mark.parametrize(
    ("text", "fine", "kept"),
    [
        ("2021-03-04T05:06:07Z", False, "2021-03-04T05:06:07Z"),
        ("2021-03-04T05:06:07.9Z", False, "2021-03-04T05:06:07Z"),
        ("2021-03-04T05:06:07+02:00", False, "2021-03-04T03:06:07Z"),
        ("2021-12-31T05:06:07.000001Z", True, "2021-12-31T05:06:07.000001Z"),
        ("2021-03-04T05:06:07.120000-01:00", True, "2021-03-04T06:06:07.120000Z"),
    ],
)
def test_a_moment_is_written_in_utc(text: str, fine: bool, kept: str) -> None:
    assert times.canonical_time(text, fine=fine) == kept


@pytest.mark.parametrize(
    ("text", "fine", "why"),
    [
        ("2021-02-30T05:06:07Z", False, "day"),
        ("2021-03-04T25:06:07Z", False, "hour"),
        ("2021-03-04T05:06:07", False, "2021"),
        ("2021-03-04T05:06:07Z", True, "2021"),
        ("2021-03-04T05:06:07.1234567Z", True, "2021"),
    ],
)
def test_what_is_no_moment_is_refused(text: str, fine: bool, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        times.canonical_time(text, fine=fine)
