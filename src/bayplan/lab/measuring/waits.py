"""How long things took, of which some had not come to their end when the run had.

A pod that still waits at the end has waited at least so long: it is *censored*. To leave such pods
out would flatter whoever lets them wait longest; to take them for pods that ran would, too. The
share that has come to its end within a time is Kaplan and Meier's estimate, which uses all that is
known of them; where nothing is censored it is the share as everybody counts it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(slots=True)
class Waits:
    """Durations in seconds: of those that came to their end, and of those that did not."""

    done: list[float] = field(default_factory=list)
    censored: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.done) + len(self.censored)

    def within(self, times: Floats) -> Floats:
        """The share that comes to its end within each of these times."""
        moments, shares = self._curve()
        index = np.searchsorted(moments, times, side="right")
        return np.concatenate(([0.0], shares))[index]

    def quantile(self, share: float) -> float | None:
        """The time within which that share comes to its end; None if the run was too short."""
        moments, shares = self._curve()
        index = int(np.searchsorted(shares, share - 1e-12, side="left"))
        return float(moments[index]) if index < len(moments) else None

    def _curve(self) -> tuple[Floats, Floats]:
        """The times at which something came to its end, and the share that had by then."""
        done = np.sort(np.array(self.done, dtype=np.float64))
        censored = np.sort(np.array(self.censored, dtype=np.float64))
        moments, counts = np.unique(done, return_counts=True)
        before = np.searchsorted(done, moments, side="left")
        gone = np.searchsorted(censored, moments, side="left")
        at_risk = len(self) - before - gone
        if not len(moments):
            return moments, moments
        shares = 1.0 - np.cumprod(1.0 - counts / at_risk)
        return moments, shares.astype(np.float64)
