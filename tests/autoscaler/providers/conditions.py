"""Wait for a condition, turn by turn of the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.patience import PATIENCE


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Let other tasks run until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():
            await others()


async def others() -> None:
    """Let every task that is ready run once."""
    await asyncio.sleep(0)
