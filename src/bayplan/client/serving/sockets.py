"""Where a server listens, and the server that listens there."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Generator

import uvicorn


class Uvicorn(uvicorn.Server):
    """uvicorn without its signal handlers: whoever runs the event loop decides about signals."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Capture none."""
        yield


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
