"""A time limit for the cleanup of a daemon that is being cancelled.

A daemon ends by cancellation and cleans up while its task is being cancelled. `asyncio.timeout`
cannot be used there: before Python 3.11.3 it mistakes its own timeout for that cancellation and
raises it, so that the rest of the cleanup is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine


async def finish_within(seconds: float, work: Coroutine[object, object, object]) -> None:
    """Wait for work to finish; cancel it after so many seconds."""
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
