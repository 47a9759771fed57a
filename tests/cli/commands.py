"""Commands as processes."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.patience import PATIENCE


class Command:
    """A command at work."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.errors: list[str] = []

    async def line(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        return (await self.process.stdout.readline()).decode().strip()

    async def said(self, *words: str) -> str:
        """The next line of its log with all these words."""
        assert self.process.stderr is not None
        while line := (await self.process.stderr.readline()).decode().strip():
            self.errors.append(line)
            if all(word in line for word in words):
                return line
        raise AssertionError(self.errors)

    async def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return await self.process.wait()


@asynccontextmanager
async def command(
    folder: Path, *arguments: str, patience: float = PATIENCE
) -> AsyncIterator[Command]:
    """A command at work on the cluster whose kubeconfig is in a folder."""
    environment = {**os.environ, "KUBECONFIG": str(folder / "kubeconfig")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", *arguments), env=environment, stdout=PIPE, stderr=PIPE
    )
    try:
        async with asyncio.timeout(patience):
            yield Command(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
