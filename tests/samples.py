"""How many examples a property is shown on: a sample, or, with `--long`, many."""

from __future__ import annotations

from hypothesis import settings

USUAL, LONG = "bayplan", "bayplan-long"
"""The names of the profiles between which `--long` decides."""


def examples(sample: int, many: int) -> settings:
    """Settings of a property test: so many examples, and with `--long` so many."""
    long = settings.get_current_profile_name() == LONG
    return settings(max_examples=many if long else sample)
