"""The time that a daemon takes to end in order.

A daemon ends by being cancelled, and what it still has to do it does while its task is being
cancelled. There `asyncio.timeout` cannot be used: before Python 3.11.3 it takes its own time limit
for that cancellation and lets it through, so that the rest of the clean-up is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def finish_within(seconds: float, work: Coroutine[object, object, object]) -> None:
    """Wait for work to be done, but no longer than that; then it is cancelled."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait([task], timeout=seconds)
    finally:
        is_late = not task.done()
        task.cancel()
    if is_late:
        await asyncio.wait([task])
    else:
        task.result()
