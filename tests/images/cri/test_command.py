"""`bayplan cri` as an operator runs it."""

import asyncio
import signal
import socket
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.images.cri import cri_pb2 as cri
from tests.images.parts.cri_process import cri_process
from tests.images.parts.service import CONFIG
from tests.patience import PATIENCE

pytestmark = pytest.mark.whole


@pytest.fixture
def short() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bayplan-") as name:
        (Path(name) / "config.toml").write_text(CONFIG)
        yield Path(name)


def configured(short: Path) -> tuple[str, str]:
    return "--config", str(short / "config.toml")


async def refused(*arguments: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bayplan", "cri", *arguments),
        stderr=asyncio.subprocess.PIPE,
    )
    _, problem = await process.communicate()
    assert process.returncode == 2
    return problem.decode()


async def test_it_serves_until_it_is_told_to_stop(short: Path) -> None:
    async with cri_process(short, *configured(short)) as running:
        status = await running.client.status(cri.StatusRequest())
        assert "kata" in [handler.name for handler in status.runtime_handlers]
        running.process.send_signal(signal.SIGTERM)
        assert await running.process.wait() == 0


async def test_it_exposes_its_metrics(short: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    async with cri_process(short, *configured(short), "--metrics-port", str(port)):
        url = f"http://127.0.0.1:{port}/metrics"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url, timeout=PATIENCE).read())
    assert b'bayplan_cri_images{default="true",runtime_handler="runc"} 0.0' in text


async def test_a_bad_configuration_is_said_in_one_line(short: Path) -> None:
    (short / "bad.toml").write_text("[plugins\n")
    options = ("--socket", str(short / "s"), "--root", str(short / "r"))
    problem = await refused(*options, "--config", str(short / "bad.toml"))
    assert "bad.toml" in problem
    assert "Traceback" not in problem


async def test_a_root_in_use_is_said(short: Path) -> None:
    async with cri_process(short):
        options = ("--socket", str(short / "other"), "--root", str(short / "store"))
        assert "in use by another process" in " ".join((await refused(*options)).split())


async def test_a_socket_that_is_a_file_is_left_alone(short: Path) -> None:
    (short / "file").write_text("precious")
    await refused("--socket", str(short / "file"), "--root", str(short / "r"))
    assert (short / "file").read_text() == "precious"
