"""Programs that are run for their output, with limits on time and size.

A program's standard error is ours. It is not put into an exception's text, because it might carry
a secret to a log.

A program is started without yielding to the event loop, so that the process group is always known:
when the time limit is reached, the whole group is killed. Processes that have left the group may
still hold the pipe. Therefore nothing waits for the pipe's end after a kill; our own end of it is
closed instead.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

LARGEST_OUTPUT = 1 << 20
_STEP = 1 << 16
_SECONDS_TO_DIE = 5.0
"""How long to wait for a killed program to exit; the kernel may hold it for longer."""


class ProgramError(Exception):
    """A program could not be run, failed, or exceeded a limit."""


class NotStartedError(ProgramError):
    """A program does not exist or cannot be started."""


@dataclass(frozen=True, slots=True)
class Program:
    """A command with its arguments, environment and limits."""

    command: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    timeout: float = 60.0
    largest: int = LARGEST_OUTPUT

    async def run(self, stdin: bytes = b"") -> bytes:
        """Run it once with that standard input; return its standard output."""
        try:
            async with asyncio.timeout(self.timeout):
                return await self._output(stdin)
        except TimeoutError:
            raise ProgramError(f"no output in {self.timeout:g} s") from None

    async def _output(self, stdin: bytes) -> bytes:
        process = self._start(piped=bool(stdin))
        writing = asyncio.ensure_future(_write(process.stdin, stdin))
        try:
            output = await self._read(process.stdout)
            code = await asyncio.to_thread(process.wait)
        except BaseException:
            await _kill(process)
            raise
        finally:
            writing.cancel()
            _close(process)
        if code != 0:
            raise ProgramError(f"exit status {code}")
        return output

    def _start(self, *, piped: bool) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(  # noqa: S603 - the command is what the user configured
                [self.command, *self.arguments],
                env=dict(self.environment),
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise NotStartedError(error.strerror or str(error)) from None

    async def _read(self, pipe: IO[bytes] | None) -> bytes:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        output = b""
        try:
            while chunk := await reader.read(_STEP):
                output += chunk
                if len(output) > self.largest:
                    raise ProgramError(f"output of more than {self.largest} bytes")
        finally:
            transport.close()
        return output


class _Input(asyncio.BaseProtocol):
    """The pipe to a program's standard input."""

    def __init__(self) -> None:
        self.closed = asyncio.get_running_loop().create_future()

    def connection_lost(self, _error: Exception | None) -> None:
        """Note that all is written, or that the program closed its input."""
        if not self.closed.done():
            self.closed.set_result(None)


async def _write(pipe: IO[bytes] | None, stdin: bytes) -> None:
    """Write a program's input; the program need not read it."""
    if pipe is None:
        return
    transport, protocol = await asyncio.get_running_loop().connect_write_pipe(_Input, pipe)
    try:
        transport.write(stdin)
        transport.write_eof()
        await protocol.closed
    finally:
        transport.abort()


async def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and its process group.

    It may have exited and left others; until it is waited for, the group id stays valid.
    """
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    gone = asyncio.ensure_future(asyncio.to_thread(process.wait))
    await asyncio.wait([gone], timeout=_SECONDS_TO_DIE)


def _close(process: subprocess.Popen[bytes]) -> None:
    """Close our ends of its pipes; other processes may hold the other ends."""
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(OSError):  # unwritten input is of no use any more
                pipe.close()
