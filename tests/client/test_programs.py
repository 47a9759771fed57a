"""Programs are gone when their time is up, whenever that is and whoever holds their pipe."""

from __future__ import annotations

import asyncio
import os
import select
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bayplan.client.programs import Program, ProgramError
from tests.patience import PATIENCE

PATH = {"PATH": "/usr/bin:/bin"}


class LifePipe:
    """A pipe that a script and its children hold open for as long as they live."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "alive"
        os.mkfifo(self.path)
        self.file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self.poll = select.poll()
        self.poll.register(self.file, select.POLLIN)

    def shell(self, script: str, limit: float = PATIENCE) -> Program:
        return Program("/bin/sh", ("-c", f"exec 3>'{self.path}'; {script}"), PATH, limit)

    def read_line(self) -> bytes:
        """Wait for the first that one of them writes there."""
        self.poll.poll()
        return os.read(self.file, 100)

    def read_end(self) -> bytes:
        """Wait until the last of them is gone, or has written something."""
        while True:
            try:
                return os.read(self.file, 100)
            except BlockingIOError:
                self.poll.poll()


@pytest.fixture
def alive(tmp_path: Path) -> Iterator[LifePipe]:
    alive = LifePipe(tmp_path)
    yield alive
    os.close(alive.file)


@pytest.mark.parametrize("limit", [0, 0.001, 0.003, 0.01, 0.03, 0.1])
async def test_a_program_that_leaves_a_child_with_its_pipe_ends_at_any_moment(
    alive: LifePipe, limit: float
) -> None:
    async with asyncio.timeout(PATIENCE):  # the child would hold the pipe for ten minutes
        with pytest.raises(ProgramError, match="no output in"):
            await alive.shell("sleep 600 & exit 0", limit).run()
        assert await asyncio.to_thread(alive.read_end) == b""


async def test_a_pipe_that_a_process_of_another_group_holds_is_not_waited_for(
    alive: LifePipe,
) -> None:
    script = "setsid sh -c 'echo $$ >&3; exec sleep 600' & sleep 600"
    running = asyncio.ensure_future(alive.shell(script).run())
    escaped = int(await asyncio.to_thread(alive.read_line))
    running.cancel()
    try:
        async with asyncio.timeout(PATIENCE):
            with pytest.raises(asyncio.CancelledError):
                await running
    finally:
        os.kill(escaped, signal.SIGKILL)


async def test_a_program_ends_with_the_task_that_runs_it(alive: LifePipe) -> None:
    running = asyncio.ensure_future(alive.shell("sleep 600 & echo started >&3; wait").run())
    assert await asyncio.to_thread(alive.read_line) == b"started\n"
    running.cancel()
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(asyncio.CancelledError):
            await running
        assert await asyncio.to_thread(alive.read_end) == b""


async def test_input_that_is_not_read_is_not_waited_for(alive: LifePipe) -> None:
    assert await alive.shell("echo done").run(b"x" * (1 << 20)) == b"done\n"


async def test_input_larger_than_a_pipe_arrives_whole(alive: LifePipe) -> None:
    assert await alive.shell("wc -c").run(b"x" * (1 << 20)) == b"%d\n" % (1 << 20)
