"""Comparison of runs: the spread over seeds, and differences between variants, seed by seed.

With the same seed the same work arrives at the same times in every variant, so runs are compared in
pairs: the difference of a variant from the first is computed for each seed and then aggregated.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

DIGITS = 6


class FigureSpread(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A figure over all seeds."""

    mean: float | None
    min: float | None
    max: float | None
    values: list[float | None]
    """One for each seed, in the order of the seeds; null where the run was too short."""


class FigureDifference(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The difference of a figure from the first variant, over all seeds."""

    mean: float | None
    min: float | None
    max: float | None
    less: int
    """The number of seeds in which it is less."""
    same: int
    more: int
    unknown: int
    """The number of seeds in which one of both is unknown."""


class Band(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A series over all seeds, point by point."""

    min: list[float]
    q1: list[float]
    median: list[float]
    q3: list[float]
    max: list[float]


def spread(values: Sequence[float | None]) -> FigureSpread:
    """Return the spread of a figure over the seeds where it is known."""
    known = [value for value in values if value is not None]
    return FigureSpread(mean=_mean(known), min=_min(known), max=_max(known), values=list(values))


def difference(values: Sequence[float | None], first: Sequence[float | None]) -> FigureDifference:
    """Return the difference from the first variant, seed by seed."""
    pairs = zip(values, first, strict=True)
    known = [a - b for a, b in pairs if a is not None and b is not None]
    return FigureDifference(
        mean=_mean(known),
        min=_min(known),
        max=_max(known),
        less=sum(change < 0 for change in known),
        same=sum(change == 0 for change in known),
        more=sum(change > 0 for change in known),
        unknown=len(values) - len(known),
    )


def band(runs: Sequence[Sequence[float]]) -> Band:
    """Return the percentiles of the series of several runs, point by point."""
    lines = np.percentile(np.array(runs, dtype=np.float64), [0, 25, 50, 75, 100], axis=0)
    least, q1, median, q3, most = (np.round(line, DIGITS).tolist() for line in lines)
    return Band(min=least, q1=q1, median=median, q3=q3, max=most)


def _mean(values: Sequence[float]) -> float | None:
    return round(sum(values) / len(values), DIGITS) + 0.0 if values else None


def _min(values: Sequence[float]) -> float | None:
    return round(min(values), DIGITS) + 0.0 if values else None


def _max(values: Sequence[float]) -> float | None:
    return round(max(values), DIGITS) + 0.0 if values else None
