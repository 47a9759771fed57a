"""`bayplan apiserver` as a command: it starts, tells where, stops, and says what is wrong."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("bayplan"))


async def run(*arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *("apiserver", *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_it_serves_until_it_is_told_to_stop(tmp_path: Path) -> None:
    config = tmp_path / "deep" / "kubeconfig"
    process = await asyncio.create_subprocess_exec(
        COMMAND,
        *("apiserver", "--data", str(tmp_path / "data.db"), "--kubeconfig", str(config)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    line = (await process.stdout.readline()).decode()
    assert line.startswith("serving https://127.0.0.1:")
    assert line.split()[1] in config.read_text()
    assert config.stat().st_mode & 0o777 == 0o600
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listen", "nowhere"), "must be ADDRESS:PORT"),
        (("--listen", "127.0.0.1:99999"), "must be ADDRESS:PORT"),
        (("--tokens", "/no/such/file"), "cannot be read"),
        (("--authorization", "maybe"), "authorization"),
        (("--data", "/no/such/folder/data.db"), "data.db"),
    ],
)
async def test_bad_arguments_are_named(arguments: tuple[str, ...], message: str) -> None:
    code, _, err = await run(*arguments)
    assert code == 2
    assert message in " ".join(err.split())
