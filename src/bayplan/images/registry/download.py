"""Downloading a blob into a sink, with resumption after cut connections.

A cut download is resumed with a Range request. If the server does not support ranges it sends the
whole blob, and the download starts over. A server that is slower than the minimum rate is treated
as failed. The sink verifies the content.
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
BodyOpener = Callable[[dict[str, str]], AbstractAsyncContextManager[aiohttp.ClientResponse]]


class BlobSink(Protocol):
    """Receives a blob's bytes."""

    @property
    def received(self) -> int:
        """The number of bytes received."""

    def write(self, data: bytes) -> None:
        """Append bytes."""

    def restart(self) -> None:
        """Drop everything received."""

    def delivered(self) -> None:
        """Report progress; called on the event loop."""


class MinimumRate(msgspec.Struct, frozen=True):
    """The slowest accepted download: 64 KiB within so many seconds."""

    seconds: float = 60.0


async def download(
    open_body: BodyOpener, sink: BlobSink, size: int, retrier: Retrier, minimum_rate: MinimumRate
) -> None:
    """Download a blob of known size into a sink."""

    async def attempt() -> None:
        start = sink.received
        headers = {"Range": f"bytes={start}-"} if start else {}
        async with open_body(headers) as response:
            if start and not _continues(response, start):
                sink.restart()
            if response.status == 416:
                raise TransientError("the registry has no such range")
            await _copy(response, sink, size, minimum_rate)

    if sink.received >= size:
        return
    # A few bytes are no progress: a server could keep the download going with a byte at a time.
    await retrier.run(attempt, lambda: sink.received // _STEP)


def _continues(response: aiohttp.ClientResponse, start: int) -> bool:
    return response.status == 206 and response.headers.get("Content-Range", "").startswith(
        f"bytes {start}-"
    )


async def _copy(
    response: aiohttp.ClientResponse, sink: BlobSink, size: int, minimum_rate: MinimumRate
) -> None:
    buffer = bytearray()
    try:
        async with asyncio.timeout(minimum_rate.seconds) as deadline:
            await _receive(response, sink, size, buffer, partial(_extend, deadline, minimum_rate))
    except TimeoutError:
        raise TransientError(f"less than {_STEP} bytes in {minimum_rate.seconds:g} s") from None
    finally:
        # What came before a cut is kept: the next attempt resumes from there.
        await _flush(sink, buffer)
    if sink.received < size:
        raise TransientError(f"the body ended after {sink.received} of {size} bytes")


async def _receive(
    response: aiohttp.ClientResponse,
    sink: BlobSink,
    size: int,
    buffer: bytearray,
    keep_going: Callable[[], None],
) -> None:
    since = 0
    while chunk := await response.content.readany():
        buffer += chunk
        since += len(chunk)
        if sink.received + len(buffer) > size:
            raise IntegrityError(f"a body longer than the {size} bytes of its descriptor")
        if len(buffer) >= _WRITE:
            await _flush(sink, buffer)
        if since >= _STEP:
            since = 0
            keep_going()


def _extend(deadline: asyncio.Timeout, minimum_rate: MinimumRate) -> None:
    deadline.reschedule(asyncio.get_running_loop().time() + minimum_rate.seconds)


async def _flush(sink: BlobSink, buffer: bytearray) -> None:
    if buffer:
        data = bytes(buffer)
        buffer.clear()
        await asyncio.to_thread(sink.write, data)
        sink.delivered()
