"""An API server and a scheduler as processes of their own, and what they take of the machine."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_ENDS_WITHIN = 20.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process that can be looked at."""

    pid: int

    @property
    def cpu(self) -> float:
        """Seconds of processor time that it has had."""
        fields = Path(f"/proc/{self.pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    @property
    def memory(self) -> float:
        """MiB of memory that it has now."""
        lines = Path(f"/proc/{self.pid}/status").read_text("utf-8").splitlines()
        used = next(line for line in lines if line.startswith("VmRSS"))
        return int(used.split()[1]) / 1024


@asynccontextmanager
async def running(*arguments: str) -> AsyncIterator[Process]:
    """A process of this Python that prints a line when it is ready; ended on leaving."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.PIPE
    )
    try:
        if process.stdout is None or not await process.stdout.readline():
            raise RuntimeError(f"{' '.join(arguments)} did not start")
        yield Process(process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(_ENDS_WITHIN):
            await process.wait()


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Path, Process | None]]:
    """The cluster that KUBECONFIG_E2E names, or an embedded server of the run's own."""
    if named := os.environ.get("KUBECONFIG_E2E"):
        yield Path(named), None
        return
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        arguments = ("-m", "bayplan", "apiserver", "--kubeconfig", str(kubeconfig))
        async with running(*arguments) as server:
            yield kubeconfig, server


@asynccontextmanager
async def scheduler(kubeconfig: Path, config: Path | None = None) -> AsyncIterator[Process]:
    """A scheduler at work on that cluster."""
    arguments = ["-m", "bench.scheduler_perf.serving", str(kubeconfig)]
    async with running(*arguments, *([str(config)] if config else [])) as process:
        yield process
