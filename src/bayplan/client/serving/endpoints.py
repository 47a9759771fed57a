"""Binding of listen addresses: its failure is a ListenError, unlike later errors of a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeVar

from prometheus_client import CollectorRegistry, start_http_server

S = TypeVar("S")


class ListenError(Exception):
    """An address cannot be bound; the message names the option, the address and the reason."""

    def __init__(self, address: str, problem: OSError) -> None:
        super().__init__(f"{address}: {problem}")
        self.short = f"{address}: {problem.strerror or problem}"
        """The message without the error number."""


@asynccontextmanager
async def bind_server(server: AbstractAsyncContextManager[S], address: str) -> AsyncIterator[S]:
    """Enter a server's context; ListenError if its address cannot be bound."""
    async with AsyncExitStack() as stack:
        try:
            serving = await stack.enter_async_context(server)
        except OSError as error:
            raise ListenError(address, error) from error
        yield serving


def serve_metrics(registry: CollectorRegistry, port: int, option: str = "--metrics-port") -> None:
    """Serve metrics on a port of 127.0.0.1 until the process ends; 0 for none."""
    if not port:
        return
    try:
        start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise ListenError(f"{option} {port}", error) from error
