"""`bayplan cri` as a process of its own, to be killed at any moment."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import grpc

from bayplan.images.cri import cri_pb2 as cri
from bayplan.images.cri.client import CriClient


class CriProcess:
    """The command, running."""

    def __init__(self, process: asyncio.subprocess.Process, client: CriClient) -> None:
        self.process = process
        self.client = client

    async def kill(self) -> None:
        """Kill it as the kernel would, and wait until it is gone."""
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()


@contextlib.asynccontextmanager
async def cri_process(directory: Path, config: Path, *options: str) -> AsyncIterator[CriProcess]:
    """Start `bayplan cri` and wait until it answers; it is dead in the end."""
    socket = directory / "cri.sock"
    command = ("-m", "bayplan", "cri", "--socket", socket, "--root", directory / "store")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, *map(str, command), "--config", str(config), *options),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with CriClient(str(socket)) as client:
        running = CriProcess(process, client)
        try:
            await _answers(running)
            yield running
        finally:
            await running.kill()


async def _answers(running: CriProcess) -> None:
    for _ in range(300):
        if running.process.returncode is not None:
            raise RuntimeError(f"bayplan cri ended with {running.process.returncode}")
        with contextlib.suppress(grpc.aio.AioRpcError):
            await running.client.version(cri.VersionRequest())
            return
        await asyncio.sleep(0.05)  # another process is starting; there is only time to wait for
    raise RuntimeError("bayplan cri does not answer")
