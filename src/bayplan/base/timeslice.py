"""Time slices for long work on the event loop, so that other tasks can run in between.

    time_slice = TimeSlice()
    for item in items:
        handle(item)
        if time_slice.is_over:
            await time_slice.begin_next()

Such work holds the loop for one time slice at most. In virtual time a slice never ends.
"""

from __future__ import annotations

import asyncio

SLICE_SECONDS = 0.02
"""The time for which one task may hold the event loop."""


class TimeSlice:
    """The current time slice of a long-running task; the first begins at once."""

    def __init__(self, seconds: float = SLICE_SECONDS) -> None:
        self._now = asyncio.get_running_loop().time
        self._seconds = seconds
        self._end = self._now() + seconds

    @property
    def is_over(self) -> bool:
        """Whether other tasks should run now."""
        return self._now() >= self._end

    async def begin_next(self) -> None:
        """Let other tasks run, then begin the next time slice."""
        await asyncio.sleep(0)
        self._end = self._now() + self._seconds
