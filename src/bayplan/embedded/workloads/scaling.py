"""Numbers that may be percentages, as rollouts and disruption budgets have them."""

from __future__ import annotations

import math


def scaled(value: object, total: int, *, up: bool) -> int:
    """A count, or a percentage of a total rounded up or down; what cannot be read is 0."""
    if isinstance(value, int):
        return value
    text = str(value or "").removesuffix("%")
    if not text.isdigit():
        return 0
    share = int(text) * total / 100
    return math.ceil(share) if up else math.floor(share)
