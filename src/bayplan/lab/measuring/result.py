"""What is kept of a run: small, whatever the run was like, and the same for the same run."""

from __future__ import annotations

import msgspec

MOST_EVENTS = 2000
"""Purchases and removals that are kept one by one; all are counted."""


class ScaleEvent(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Instances of one group that were bought, failed or went at one moment."""

    time: float
    what: str
    """bought, failed, or removed."""
    group: str
    count: int
    why: str = ""


class Waiting(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How long pods took from created to running."""

    pods: int
    never_ran: int
    """Of these, how many had not run when the run ended or they were deleted."""
    within: list[float]
    """The share that runs within each time of `WITHIN`."""
    quantiles: dict[str, float | None]
    """Seconds by share: p50, p90, p99; None where the run ended before so many ran."""


class Measured(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A run in numbers."""

    seconds: float
    series: dict[str, list[float]]
    """Means over the steps of the grid, by name."""
    figures: dict[str, float | None]
    waiting: Waiting
    events: list[ScaleEvent]
    events_left_out: int
    digest: str
    """Of all changes of the run: the same for the same run."""


WITHIN = [round(10 ** (exponent / 10), 4) for exponent in range(51)]
"""Times in seconds at which the distribution is told: from a second to a day and more, ten for each
tenfold."""
