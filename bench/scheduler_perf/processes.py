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
_STARTS_WITHIN = 120.0


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
async def running(command: str, *options: str, ready: str) -> AsyncIterator[Process]:
    """A command of ours, once it has written a line that ends so; ended on leaving."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", command, *options),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    if process.stdout is None:
        raise RuntimeError("a process without its output")
    try:
        async with asyncio.timeout(_STARTS_WITHIN):
            await _until(process.stdout, ready)
        reading = asyncio.ensure_future(_pass_on(process.stdout))
        yield Process(process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(_ENDS_WITHIN):
            await process.wait()
    await reading


async def _until(output: asyncio.StreamReader, ready: str) -> None:
    said = b""
    async for line in output:
        said += line
        if ready in line.decode():
            return
    raise RuntimeError(f"a process did not start: {said.decode()}")


async def _pass_on(output: asyncio.StreamReader) -> None:
    """Show warnings, and leave no process waiting to be read."""
    async for line in output:
        if b"WARN" in line or b"ERROR" in line:
            sys.stderr.buffer.write(line)


@asynccontextmanager
async def cluster() -> AsyncIterator[tuple[Path, Process | None]]:
    """The cluster that KUBECONFIG_E2E names, or an embedded server of the run's own."""
    if named := os.environ.get("KUBECONFIG_E2E"):
        yield Path(named), None
        return
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = Path(folder) / "kubeconfig"
        options = ("--kubeconfig", str(kubeconfig))
        async with running("apiserver", *options, ready="") as server:
            yield kubeconfig, server


@asynccontextmanager
async def scheduler(kubeconfig: Path, config: Path | None = None) -> AsyncIterator[Process]:
    """A scheduler at work on that cluster."""
    options = ["--kubeconfig", str(kubeconfig), "--no-leader-elect"]
    if config is not None:
        options += ["--config", str(config)]
    async with running("scheduler", *options, ready="became leader") as process:
        yield process
