"""Waiting for what must come true, without waiting for time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tests.patience import PATIENCE


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Let everybody else work until something holds."""
    async with asyncio.timeout(PATIENCE):
        while not await holds():
            await others()


async def others() -> None:
    """Let whoever is ready to work do so once."""
    await asyncio.sleep(0)
