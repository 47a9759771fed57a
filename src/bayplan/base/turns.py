"""Long work done in turns, so that others on the event loop have theirs.

    turns = Turns()
    for one in many:
        take(one)
        if turns.is_over:
            await turns.next()

Whoever works so holds the loop for one turn at the most, whatever there is to do. In virtual time
nothing takes long, and nobody is ever interrupted.
"""

from __future__ import annotations

import asyncio

TURN = 0.02
"""Seconds for which one may hold the event loop."""


class Turns:
    """The turns of one who has much to do; the first begins at once."""

    def __init__(self, seconds: float = TURN) -> None:
        self._now = asyncio.get_running_loop().time
        self._seconds = seconds
        self._end = self._now() + seconds

    @property
    def is_over(self) -> bool:
        """Whether it is somebody else's turn."""
        return self._now() >= self._end

    async def next(self) -> None:
        """Let the others have theirs, and begin another."""
        await asyncio.sleep(0)
        self._end = self._now() + self._seconds
