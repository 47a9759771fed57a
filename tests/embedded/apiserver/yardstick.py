"""What a request may cost, by a fixed piece of work: on a busy machine all work takes longer."""

from __future__ import annotations

import time

SOON = 110
"""How many times the yardstick's work is soon: a second on a quiet machine."""


def yardstick() -> float:
    """Seconds of work that a fixed piece of it takes now."""
    start = time.thread_time()
    sum(number * number for number in range(200_000))
    return time.thread_time() - start
