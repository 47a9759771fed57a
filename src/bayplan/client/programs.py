"""Programs that are run for what they print: bounded in time and size, and gone afterwards.

What a program prints on standard error passes to ours, where people look, rather than into an
exception's text, where it might carry a secret to a log.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

LARGEST_OUTPUT = 1 << 20
_STEP = 1 << 16


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
        process = await self._start(piped=bool(said))
        telling = asyncio.ensure_future(_tell(process, said))
        try:
            output = await self._bounded(process)
            code = await process.wait()
        except BaseException:
            await _kill(process)
            raise
        finally:
            telling.cancel()
        if code != 0:
            raise ProgramError(f"exit status {code}")
        return output

    async def _start(self, *, piped: bool) -> asyncio.subprocess.Process:
        pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
        try:
            return await asyncio.create_subprocess_exec(
                self.command,
                *self.arguments,
                env=dict(self.environment),
                stdin=pipe if piped else nothing,
                stdout=pipe,
                start_new_session=True,
            )
        except OSError as error:
            raise NotStartedError(error.strerror or str(error)) from None

    async def _bounded(self, process: asyncio.subprocess.Process) -> bytes:
        output = b""
        while process.stdout and (chunk := await process.stdout.read(_STEP)):
            output += chunk
            if len(output) > self.largest:
                raise ProgramError(f"answered more than {self.largest} bytes")
        return output


async def _tell(process: asyncio.subprocess.Process, said: bytes) -> None:
    """Give a process its input; one that does not want it need not read it."""
    if process.stdin is None:
        return
    with suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(said)
        await process.stdin.drain()
    process.stdin.close()


async def _kill(process: asyncio.subprocess.Process) -> None:
    """End a process, whatever it started, and what they left in the pipe.

    It may have ended itself and left others that hold the pipe; they are of its group.
    """
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    while process.stdout and await process.stdout.read(_STEP):
        pass
    await process.wait()
