"""Waiting for an event or for some time, whichever comes first."""

from __future__ import annotations

import asyncio

from bayplan.base.clock import Clock


async def wait_for_event(clock: Clock, event: asyncio.Event, seconds: float | None) -> None:
    """Return when the event is set, or after so many seconds; None waits for the event alone."""
    if seconds is None:
        await event.wait()
        return
    timer = asyncio.ensure_future(clock.sleep(seconds))
    woken = asyncio.ensure_future(event.wait())
    try:
        await asyncio.wait({timer, woken}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        woken.cancel()
