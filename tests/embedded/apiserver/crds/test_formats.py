"""Formats of strings in a definition's schema."""

from __future__ import annotations

import pytest

from bayplan.embedded.apiserver.crds.formats import is_of_format


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("date-time", "2026-01-02T03:04:05Z", "2026-13-02T03:04:05Z"),
        ("date", "2026-01-02", "2026-1-2"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567"),
        ("byte", "aGk=", "!!"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("cidr", "10.0.0.0/8", "10.0.0.0"),
        ("email", "a@example.com", "example.com"),
        ("isbn10", "0321751043", "0321751044"),
        ("k8s-short-name", "a-b", "A"),
        ("unheard-of", "anything", ""),
    ],
)
def test_a_string_of_a_format_is_told_from_others(name: str, right: str, wrong: str) -> None:
    assert is_of_format(right, name)
    assert name == "unheard-of" or not is_of_format(wrong, name)
