"""Listening sockets, and the uvicorn server on them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias

import uvicorn

from bayplan.client.serving.connection import BoundedConnection

App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
_IDLE_SECONDS = 120
_POLL_SECONDS = 0.005


class UvicornServer(uvicorn.Server):
    """uvicorn without its signal handlers, which are left to the owner of the event loop.

    It ends as soon as `end` is called and its clients are gone; uvicorn itself checks for either
    ten times a second, which would take longer than most tests.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture no signals."""
        yield

    async def begin(self, listener: socket.socket, name: str) -> asyncio.Task[None]:
        """Start to serve in a task of that name; return when clients can connect."""
        task = asyncio.create_task(self.serve([listener]), name=name)
        try:
            while not self.started and not task.done():  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(_POLL_SECONDS)
        except asyncio.CancelledError:
            self.end()
            await task
            raise
        return task

    def end(self, *, at_once: bool = False) -> None:
        """End the server when its clients have their responses, or at once."""
        self.should_exit = True
        self.force_exit |= at_once
        self._ending.set()

    async def main_loop(self) -> None:
        """Serve until `end` is called."""
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no new connections, and wait for open ones as long as `grace_seconds`."""
        for listener in (*self.servers, *(sockets or ())):
            listener.close()
        for connection in tuple(self.server_state.connections):
            connection.shutdown()
        try:
            await asyncio.wait_for(self._clients_gone(), self.config.timeout_graceful_shutdown)
        except TimeoutError:
            for task in self.server_state.tasks:
                task.cancel()

    async def _clients_gone(self) -> None:
        state = self.server_state
        while (state.connections or state.tasks) and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(_POLL_SECONDS)


def https_config(
    app: App,
    tls: ssl.SSLContext,
    connection: type[BoundedConnection] = BoundedConnection,
    *,
    grace_seconds: int,
    most_at_once: int | None = None,
) -> uvicorn.Config:
    """Return uvicorn's configuration for an application over TLS with keep-alive connections.

    On shutdown the server waits for its clients as long as `grace_seconds`.
    """
    config = uvicorn.Config(
        app,
        http=connection,
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        limit_concurrency=most_at_once,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=grace_seconds,
    )
    config.load()
    config.ssl = tls
    return config


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address; OSError with the address if it cannot."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=1024)
    except OSError as problem:
        reason = str(problem.strerror).partition(" (while ")[0]
        raise OSError(f"{host}:{port}: {reason}") from problem
    # Accepted connections inherit this; asyncio sets it only where it made the socket itself.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the address and port of a socket, in the form for a URL."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
