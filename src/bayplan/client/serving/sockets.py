"""Where a server listens, and the server that listens there."""

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


class Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: whoever runs the event loop decides about signals.

    It ends as soon as it is told to and its clients are gone; uvicorn itself looks for either ten
    times a second, and most servers of tests would take longer to end than their test.
    """

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._ending = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield

    async def begin(self, listener: socket.socket, name: str) -> asyncio.Task[None]:
        """Serve in a task of that name; returns when clients can connect."""
        task = asyncio.create_task(self.serve([listener]), name=name)
        try:
            while not self.started and not task.done():  # noqa: ASYNC110 - it tells no other way
                await asyncio.sleep(_POLL_SECONDS)
        except asyncio.CancelledError:
            self.end()
            await task
            raise
        return task

    def end(self, *, at_once: bool = False) -> None:
        """End the server: when its clients have their answers, or at once."""
        self.should_exit = True
        self.force_exit |= at_once
        self._ending.set()

    async def main_loop(self) -> None:
        """Serve until told to end."""
        await self.on_tick(0)
        await self._ending.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept nobody else, and wait for those who are here as long as `grace_seconds`."""
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


def https(
    app: App,
    tls: ssl.SSLContext,
    connection: type[BoundedConnection] = BoundedConnection,
    *,
    grace_seconds: int,
    most_at_once: int | None = None,
) -> uvicorn.Config:
    """How an application is served: over TLS, on connections that stay, saying nothing of itself.

    A server that stops waits for its clients as long as `grace_seconds`.
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


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens there; OSError, with the address in it, if it cannot."""
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
    """The address and port of a socket, as a URL has them."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
