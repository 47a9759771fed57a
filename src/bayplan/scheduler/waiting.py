"""Waiting for one of two things: to be told something, or for some time to go by."""

from __future__ import annotations

import asyncio

from bayplan.base.clock import Clock


async def told_or_late(clock: Clock, news: asyncio.Event, seconds: float | None) -> None:
    """Return when the event is set, or after so many seconds; None waits for the event alone."""
    if seconds is None:
        await news.wait()
        return
    timer = asyncio.ensure_future(clock.sleep(seconds))
    told = asyncio.ensure_future(news.wait())
    try:
        await asyncio.wait({timer, told}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        told.cancel()
