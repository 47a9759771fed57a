"""Streaming one blob to where it is kept, through cut connections and slow servers.

A body that breaks off is resumed with a Range request from the byte that is missing. A server that
does not understand ranges sends the whole again, and we start over. A server that drips slower than
the pace is treated as broken. The sink verifies; this module only delivers.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Protocol

import aiohttp
import msgspec

from bayplan.images.registry.errors import IntegrityError, Retrier, TransientError

_STEP = 64 * 1024
_WRITE = 1024 * 1024
Opener = Callable[[dict[str, str]], AbstractAsyncContextManager[aiohttp.ClientResponse]]


class Sink(Protocol):
    """Where a blob's bytes go."""

    @property
    def received(self) -> int:
        """How many bytes are there."""

    def write(self, data: bytes) -> None:
        """Take the next bytes."""

    def restart(self) -> None:
        """Forget everything received."""

    def delivered(self) -> None:
        """Hear, on the event loop, that bytes have arrived."""


class Pace(msgspec.Struct, frozen=True):
    """The slowest body we bear: every 64 KiB within so many seconds."""

    seconds: float = 60.0


async def download(open_body: Opener, sink: Sink, size: int, retrier: Retrier, pace: Pace) -> None:
    """Bring a blob of known size into a sink."""

    async def attempt() -> None:
        start = sink.received
        headers = {"Range": f"bytes={start}-"} if start else {}
        async with open_body(headers) as response:
            if start and not _continues(response, start):
                sink.restart()
            if response.status == 416:
                raise TransientError("the registry has no such range")
            await _copy(response, sink, size, pace)

    if sink.received >= size:
        return
    # Crumbs are no progress: a server could keep us at it with a byte at a time.
    await retrier.run(attempt, lambda: sink.received // _STEP)


def _continues(response: aiohttp.ClientResponse, start: int) -> bool:
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(
        f"bytes {start}-"
    )


async def _copy(response: aiohttp.ClientResponse, sink: Sink, size: int, pace: Pace) -> None:
    buffer = bytearray()
    try:
        async with asyncio.timeout(pace.seconds) as deadline:
            await _receive(response, sink, size, buffer, partial(_extend, deadline, pace))
    except TimeoutError:
        raise TransientError(f"less than {_STEP} bytes in {pace.seconds:g} s") from None
    finally:
        # What came before a cut is worth keeping: the next try goes on from there.
        await _flush(sink, buffer)
    if sink.received < size:
        raise TransientError(f"the body ended after {sink.received} of {size} bytes")


async def _receive(
    response: aiohttp.ClientResponse,
    sink: Sink,
    size: int,
    buffer: bytearray,
    keep_going: Callable[[], None],
) -> None:
    since = 0
    while chunk := await response.content.readany():
        buffer += chunk
        since += len(chunk)
        if sink.received + len(buffer) > size:
            raise IntegrityError(f"a body longer than the {size} bytes that were announced")
        if len(buffer) >= _WRITE:
            await _flush(sink, buffer)
        if since >= _STEP:
            since = 0
            keep_going()


def _extend(deadline: asyncio.Timeout, pace: Pace) -> None:
    deadline.reschedule(asyncio.get_running_loop().time() + pace.seconds)


async def _flush(sink: Sink, buffer: bytearray) -> None:
    if buffer:
        data = bytes(buffer)
        buffer.clear()
        await asyncio.to_thread(sink.write, data)
        sink.delivered()
