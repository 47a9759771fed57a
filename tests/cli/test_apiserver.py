"""`bayplan apiserver` as a command: it starts, tells where, stops, and says what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import sqlite3
import sys
from pathlib import Path

import pytest

from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.server import ApiServer

pytestmark = pytest.mark.whole


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


async def started(*arguments: str) -> tuple[asyncio.subprocess.Process, str, str]:
    """A server, and the two lines that it says first."""
    process = await asyncio.create_subprocess_exec(
        COMMAND, *("apiserver", *arguments), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    first, second = await process.stdout.readline(), await process.stdout.readline()
    return process, first.decode().strip(), second.decode().strip()


def is_private(path: str, text: str) -> bool:
    """Whether a file is there, for its owner only, and says something."""
    file = Path(path)
    return file.exists() and file.stat().st_mode & 0o777 == 0o600 and text in file.read_text()


async def ended(process: asyncio.subprocess.Process) -> None:
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_without_a_kubeconfig_it_says_how_to_get_in() -> None:
    process, serving, export = await started()
    assert export.startswith("export KUBECONFIG=")
    path = export.partition("=")[2]
    assert is_private(path, serving.split()[1])
    await ended(process)
    assert not is_private(path, "")


async def test_it_keeps_its_port_with_its_data(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path / "data.db"))
    process, first, _ = await started(*data)
    await ended(process)
    process, second, _ = await started(*data)
    await ended(process)
    assert second == first
    taken = int(first.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", taken)):
        process, third, _ = await started(*data)
        await ended(process)
    assert third != first


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--listen", "nowhere"), "must be ADDRESS:PORT"),
        (("--listen", "127.0.0.1:99999"), "must be ADDRESS:PORT"),
        (("--tokens", "/no/such/file"), "cannot be read"),
        (("--authorization", "maybe"), "authorization"),
        (("--data", "/no/such/folder/data.db"), "data.db"),
        (("--kubeconfig", "/tmp"), "/tmp: is a directory"),
    ],
)
async def test_bad_arguments_are_named(arguments: tuple[str, ...], message: str) -> None:
    code, _, err = await run(*arguments)
    assert code == 2
    assert message in " ".join(err.split())


async def test_a_port_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        code, _, err = await run("--listen", address)
    assert code == 2
    assert f"{address}: Address already in use" in err


async def test_a_kubeconfig_of_another_cluster_is_not_replaced(tmp_path: Path) -> None:
    mine = tmp_path / "config"
    mine.write_text("kind: Config\nclusters: [{name: production, cluster: {}}]\n")
    code, _, err = await run("--kubeconfig", str(mine))
    assert code == 2
    assert f"{mine}: not written by this server" in err
    assert "production" in mine.read_text()


async def test_a_data_file_in_use_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data.db"
    async with ApiServer(ServerConfig(data=data)):
        code, _, err = await run("--data", str(data))
    assert code == 2
    assert f"{data}: in use by another process" in err


async def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    data = tmp_path / "photos.db"
    with contextlib.closing(sqlite3.connect(data)) as other:
        other.execute("CREATE TABLE photos (name TEXT)")
    before = data.read_bytes()
    code, _, err = await run("--data", str(data))
    assert code == 2
    assert "database of another program" in err
    assert data.read_bytes() == before
