"""A TCP proxy that misbehaves on request: real connections, cut for real."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Self
from urllib.parse import urlsplit

from bayplan.client import Access


class RudeProxy:
    """Passes bytes between a client and an API server until a test has it misbehave."""

    def __init__(self, access: Access) -> None:
        parts = urlsplit(access.server)
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if parts.scheme == "https" else 80)
        self._scheme = parts.scheme
        self._original = access
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._refusing = False
        self._swallowing = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0

    @property
    def access(self) -> Access:
        """How to reach the same server through this proxy."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        tls = self._original.tls
        tls = replace(tls, server_name=tls.server_name or self._host)
        return replace(self._original, server=f"{self._scheme}://127.0.0.1:{port}", tls=tls)

    def cut(self) -> None:
        """Cut every connection there is, without a goodbye."""
        for writer in tuple(self._open):
            writer.transport.abort()

    def refuse(self, *, refusing: bool) -> None:
        """Cut new connections as soon as they come."""
        self._refusing = refusing

    def swallow_answers(self) -> None:
        """Pass on what the client says, and cut the connection instead of answering."""
        self._swallowing.set()

    def behave(self) -> None:
        """Pass everything on again."""
        self._swallowing.clear()
        self._refusing = False

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open.add(writer)
        self.connections += 1
        try:
            if not self._refusing:
                await self._pass_on(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            self._open.discard(writer)
            writer.transport.abort()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        self._open.add(far_writer)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump(reader, far_writer, answers=False))
                both.create_task(self._pump(far_reader, writer, answers=True))
        except* OSError:
            pass
        finally:
            self._open.discard(far_writer)
            far_writer.transport.abort()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, answers: bool
    ) -> None:
        while data := await source.read(1 << 16):
            if answers and self._swallowing.is_set():
                break
            sink.write(data)
            await sink.drain()
        with suppress(OSError, RuntimeError):
            sink.transport.abort()
        raise ConnectionAbortedError
