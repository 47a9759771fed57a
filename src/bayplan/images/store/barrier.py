"""Making content durable, for several pulls at once.

Flushing a file system costs the same for one pull as for ten. Whoever asks while a flush is still
waiting to start shares it; whoever asks later needs the next one, since its content may have come
after the first began.
"""

import asyncio
from collections.abc import Callable

from bayplan.images.flights import uninterrupted


class Barrier:
    """One flush at a time, shared by those it covers."""

    def __init__(self, flush: Callable[[], None]) -> None:
        self._flush = flush
        self._flushing = asyncio.Lock()
        self._next: asyncio.Task[None] | None = None

    async def passed(self) -> None:
        """Return when everything written before this call would survive a loss of power."""
        if self._next is None:
            self._next = asyncio.ensure_future(self._run())
        await uninterrupted(self._next)

    async def _run(self) -> None:
        async with self._flushing:
            self._next = None
            await asyncio.to_thread(self._flush)
