"""Changes as server-sent events, to one client for as long as it keeps up."""

from __future__ import annotations

import asyncio
from typing import Literal

from aiohttp import web

from bayplan.ui.journal import Listener

BEAT = 15.0
"""Seconds after which a silent stream says that it is there."""
WRITE_SECONDS = 30.0
"""A client that takes no byte for so long is gone."""
RESET = b"event: reset\ndata: {}\n\n"


async def send(
    answer: web.StreamResponse, listener: Listener | None, closing: asyncio.Event
) -> None:
    """Send changes until the client is too slow, goes, or the server stops."""
    if listener is None:
        await _write(answer, RESET)
        return
    stopping = asyncio.create_task(closing.wait())
    try:
        await _write(answer, b": here\n\n")
        while await _send_next(answer, listener, stopping):
            pass
    finally:
        stopping.cancel()
        listener.close()


async def _send_next(
    answer: web.StreamResponse, listener: Listener, stopping: asyncio.Task[Literal[True]]
) -> bool:
    """Send one more thing; False if that was the last."""
    coming = asyncio.create_task(listener.next())
    await asyncio.wait({coming, stopping}, timeout=BEAT, return_when=asyncio.FIRST_COMPLETED)
    if not coming.done():
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        if not stopping.done():
            await _write(answer, b": still here\n\n")
        return not stopping.done()
    entry = coming.result()
    await _write(answer, RESET if entry is None else entry.data)
    return entry is not None


async def _write(answer: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(WRITE_SECONDS):
        await answer.write(data)
