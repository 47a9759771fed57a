"""Indexes of a Job's pods, written as `1,3-5,7`."""

from __future__ import annotations

import re
from collections.abc import Iterator


class IndexesError(ValueError):
    """Why a text does not say indexes."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text says; IndexesError if it says none, or such as there are not."""
    total, last = 0, None
    for first, end in _intervals(text, completions):
        if last is not None and last >= first:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {first}")
        total, last = total + end - first + 1, end
    return total


def overlap(one: str, other: str, completions: int) -> int | None:
    """The first index that two texts both say; what cannot be read of them is left out."""
    left = sorted(_readable(one, completions))
    right = sorted(_readable(other, completions))
    at = 0
    for first, end in left:
        while at < len(right) and right[at][1] < first:
            at += 1
        if at < len(right) and right[at][0] <= end:
            return max(first, right[at][0])
    return None


def _intervals(text: str, completions: int) -> Iterator[tuple[int, int]]:
    return (_interval(part, completions) for part in text.split(",")) if text else iter(())


def _readable(text: str, completions: int) -> Iterator[tuple[int, int]]:
    for part in text.split(",") if text else ():
        try:
            yield _interval(part, completions)
        except IndexesError:
            continue


def _interval(text: str, completions: int) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) > 2:
        raise IndexesError(
            f'the fragment "{text}" violates the requirement that an index interval can have at '
            "most two parts separated by '-'"
        )
    first, end = (_index(part, completions) for part in (parts[0], parts[-1]))
    if len(parts) == 2 and first >= end:
        raise IndexesError(f"non-increasing order, previous: {first}, current: {end}")
    return first, end


def _index(text: str, completions: int) -> int:
    if not re.fullmatch(r"\+?[0-9]{1,18}", text):
        raise IndexesError(f'cannot convert string to integer for index: "{text}"')
    if int(text) >= completions:
        raise IndexesError(f'too large index: "{text}"')
    return int(text)
