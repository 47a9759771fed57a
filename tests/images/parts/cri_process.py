"""`bayplan cri` as a process of its own, to be killed at any moment."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from bayplan.images.cri.client import CriClient


class CriProcess:
    """The command, running."""

    def __init__(self, process: asyncio.subprocess.Process, client: CriClient) -> None:
        self.process = process
        self.client = client

    async def kill(self) -> None:
        """Kill it as the kernel would, and wait until it is gone."""
        await self.stop(signal.SIGKILL)

    async def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(number)
        await self.process.wait()


@contextlib.asynccontextmanager
async def cri_process(
    directory: Path, *options: str, name: str = "cri.sock"
) -> AsyncIterator[CriProcess]:
    """Start `bayplan cri` and wait until it serves; it is gone in the end."""
    socket = directory / name
    command = ("-m", "bayplan", "cri", "--socket", socket, "--root", directory / "store")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *map(str, command), *options), stderr=asyncio.subprocess.PIPE
    )
    async with CriClient(str(socket)) as client:
        running = CriProcess(process, client)
        reading = asyncio.ensure_future(_drain(process, serving := asyncio.Event()))
        try:
            await serving.wait()
            assert not reading.done(), "it ended before it served"
            yield running
        finally:
            await running.stop()
            await reading


async def _drain(process: asyncio.subprocess.Process, serving: asyncio.Event) -> None:
    """Read what it says until it ends; it says when it serves, and an end is an end of waiting."""
    assert process.stderr is not None
    while line := await process.stderr.readline():
        if line.startswith(b"serving"):
            serving.set()
    serving.set()
