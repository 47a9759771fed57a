"""Where random numbers come from: a seed, and how far earlier runs with the same objects came."""

from __future__ import annotations

from random import Random


def dice(seed: int, revision: int, whose: str = "") -> Random:
    """Random numbers for a run that begins at a revision of its store.

    A run that goes on with a data file must not throw what an earlier one threw: it would make the
    same UIDs and names again, for other objects.
    """
    later = f"{seed} {revision} {whose}" if revision or whose else seed
    return Random(later)  # noqa: S311 - not for secrets
