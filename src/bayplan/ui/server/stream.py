"""The stream of changes to one client, as server-sent events."""

from __future__ import annotations

import asyncio
from typing import Literal

from aiohttp import web

from bayplan.ui.changelog import ChangeListener

HEARTBEAT_SECONDS = 15.0
"""Seconds after which a comment is sent on an idle stream."""
WRITE_SECONDS = 30.0
"""Seconds after which a client that reads nothing is disconnected."""
RESET = b"event: reset\ndata: {}\n\n"


async def send(
    answer: web.StreamResponse, listener: ChangeListener | None, closing: asyncio.Event
) -> None:
    """Send changes until the client is too slow or disconnects, or the server stops."""
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
    answer: web.StreamResponse, listener: ChangeListener, stopping: asyncio.Task[Literal[True]]
) -> bool:
    """Send the next change; return False if it was the last."""
    coming = asyncio.create_task(listener.next())
    await asyncio.wait(
        {coming, stopping}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
    )
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
