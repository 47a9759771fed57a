"""The real kubectl, not installed by `make test`: tests without it are skipped; in CI they fail."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KUBECTL = shutil.which("kubectl") or ""
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed")


class Output(NamedTuple):
    """The output of a kubectl."""

    code: int
    out: str
    err: str


Kubectl = Callable[..., Coroutine[Any, Any, Output]]


def runner(config: Path, folder: Path) -> Kubectl:
    """Return a function that runs kubectl with a kubeconfig."""

    async def run(*arguments: str, stdin: str = "", ok: bool = True) -> Output:
        process = await _start(config, folder, *arguments)
        out, err = await process.communicate(stdin.encode())
        result = Output(process.returncode or 0, out.decode(), err.decode())
        assert not ok or result.code == 0, result
        return result

    return run


@asynccontextmanager
async def printed_lines(
    config: Path, folder: Path, *arguments: str
) -> AsyncIterator[AsyncIterator[str]]:
    """Run a kubectl that does not end by itself; yield the lines that it prints, as they come."""
    process = await _start(config, folder, *arguments)
    assert process.stdout is not None
    try:
        yield (line.decode().rstrip("\n") async for line in process.stdout)
    finally:
        process.terminate()
        await process.communicate()


async def _start(config: Path, folder: Path, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        KUBECTL,
        *(f"--kubeconfig={config}", f"--cache-dir={folder}/cache", *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
    )
