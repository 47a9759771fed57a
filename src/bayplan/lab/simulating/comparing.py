"""What many runs come to: the spread over seeds, and differences between variants, seed by seed.

The same seed has the same work arrive at the same times in every variant, so runs are compared in
pairs: how much a variant differs from the first is said for each seed, and only then put together.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

DIGITS = 6


class Spread(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A figure over all seeds."""

    mean: float | None
    min: float | None
    max: float | None
    values: list[float | None]
    """One a seed, in the order of the seeds; null where the run was too short to say."""


class Difference(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How much a figure of a variant is more than the first variant's, over all seeds."""

    mean: float | None
    min: float | None
    max: float | None
    less: int
    """In how many seeds it is less."""
    same: int
    more: int
    unknown: int
    """In how many seeds one of both was not known."""


class Band(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A series over all seeds, point by point."""

    min: list[float]
    q1: list[float]
    median: list[float]
    q3: list[float]
    max: list[float]


def spread(values: Sequence[float | None]) -> Spread:
    """A figure over all seeds; what is known of it."""
    known = [one for one in values if one is not None]
    return Spread(mean=_mean(known), min=_min(known), max=_max(known), values=list(values))


def difference(ours: Sequence[float | None], first: Sequence[float | None]) -> Difference:
    """Ours less the first's, seed by seed."""
    pairs = zip(ours, first, strict=True)
    known = [a - b for a, b in pairs if a is not None and b is not None]
    return Difference(
        mean=_mean(known),
        min=_min(known),
        max=_max(known),
        less=sum(one < 0 for one in known),
        same=sum(one == 0 for one in known),
        more=sum(one > 0 for one in known),
        unknown=len(ours) - len(known),
    )


def band(runs: Sequence[Sequence[float]]) -> Band:
    """Series of several runs laid over each other."""
    lines = np.percentile(np.array(runs, dtype=np.float64), [0, 25, 50, 75, 100], axis=0)
    least, q1, median, q3, most = (np.round(line, DIGITS).tolist() for line in lines)
    return Band(min=least, q1=q1, median=median, q3=q3, max=most)


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), DIGITS) + 0.0 if values else None


def _min(values: Sequence[float]) -> float | None:
    return round(min(values), DIGITS) + 0.0 if values else None


def _max(values: Sequence[float]) -> float | None:
    return round(max(values), DIGITS) + 0.0 if values else None
