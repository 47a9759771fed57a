"""Programs that are run for what they print: bounded in time and size, and gone afterwards.

What a program prints on standard error passes to ours, where people look, rather than into an
exception's text, where it might carry a secret to a log.

A program is started without giving way to the event loop, so that at no moment there is a process
whose group is not known: whenever the time limit strikes, all of the group is killed. Processes
that have left the group may still hold the pipe. Therefore nothing waits for the pipe's end once
the program is given up; our own end of it is closed instead.
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
"""How long a killed program may take to be gone; the kernel may hold it for longer."""


class ProgramError(Exception):
    """A program that could not be run, or did not do what it should."""


class NotStartedError(ProgramError):
    """A program that is not there, or cannot be started."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program with what it is given."""

    command: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    timeout: float = 60.0
    largest: int = LARGEST_OUTPUT

    async def run(self, said: bytes = b"") -> bytes:
        """Run it once with that on its standard input; what it prints."""
        try:
            async with asyncio.timeout(self.timeout):
                return await self._output(said)
        except TimeoutError:
            raise ProgramError(f"no answer in {self.timeout:g} s") from None

    async def _output(self, said: bytes) -> bytes:
        process = self._start(piped=bool(said))
        writing = asyncio.ensure_future(_write(process.stdin, said))
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
                    raise ProgramError(f"answered more than {self.largest} bytes")
        finally:
            transport.close()
        return output


class _Input(asyncio.BaseProtocol):
    """The pipe to a program's standard input."""

    def __init__(self) -> None:
        self.closed = asyncio.get_running_loop().create_future()

    def connection_lost(self, _error: Exception | None) -> None:
        """All is written, or the program does not want it."""
        if not self.closed.done():
            self.closed.set_result(None)


async def _write(pipe: IO[bytes] | None, said: bytes) -> None:
    """Write a program's input; one that does not want it need not read it."""
    if pipe is None:
        return
    transport, protocol = await asyncio.get_running_loop().connect_write_pipe(_Input, pipe)
    try:
        transport.write(said)
        transport.write_eof()
        await protocol.closed
    finally:
        transport.abort()


async def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and all of its group.

    It may have ended itself and left others; as long as it is not waited for, the group is theirs.
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
            with suppress(OSError):  # what is not written is not wanted
                pipe.close()
