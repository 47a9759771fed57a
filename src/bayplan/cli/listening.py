"""What all that serves has in common: its event loop, and the address that it listens at."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from bayplan.cli.errors import BadInput


def fastest_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's event loop where there is one; None for the standard one."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


def listen_address(listen: str, option: str = "--listen") -> tuple[str, int]:
    """Host and port of ADDRESS:PORT; BadInput if it is none."""
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise BadInput(f"{option} {listen}: must be ADDRESS:PORT")
    return host.strip("[]") or "127.0.0.1", int(port)
