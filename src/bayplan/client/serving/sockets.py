"""Where a server listens, and the server that listens there."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeAlias

import uvicorn

from bayplan.client.serving.connection import BoundedConnection

App: TypeAlias = Callable[[Any, Any, Any], Awaitable[None]]
_IDLE_SECONDS = 120


class Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: whoever runs the event loop decides about signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


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
