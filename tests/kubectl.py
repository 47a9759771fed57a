"""The real kubectl, not installed by `make test`: tests without it are skipped; in CI they fail."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, NamedTuple

import pytest

KUBECTL = shutil.which("kubectl") or ""
needs_kubectl = pytest.mark.skipif(not KUBECTL, reason="kubectl is not installed")


class Output(NamedTuple):
    """What a kubectl said."""

    code: int
    out: str
    err: str


Kubectl = Callable[..., Coroutine[Any, Any, Output]]


def runner(config: Path, folder: Path) -> Kubectl:
    """Return a function that runs kubectl with a kubeconfig."""

    async def run(*arguments: str, stdin: str = "", ok: bool = True) -> Output:
        process = await asyncio.create_subprocess_exec(
            KUBECTL,
            *(f"--kubeconfig={config}", f"--cache-dir={folder}/cache", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": "/usr/bin:/bin", "HOME": str(folder)},
        )
        out, err = await process.communicate(stdin.encode())
        result = Output(process.returncode or 0, out.decode(), err.decode())
        assert not ok or result.code == 0, result
        return result

    return run
