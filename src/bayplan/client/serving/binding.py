"""Addresses that cannot be bound: told apart from all that fails later in a server's life."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TypeVar

from prometheus_client import CollectorRegistry, start_http_server

S = TypeVar("S")


class ListenError(Exception):
    """An address cannot be bound; the message names the option, the address and the reason."""

    def __init__(self, where: str, problem: OSError) -> None:
        super().__init__(f"{where}: {problem}")
        self.short = f"{where}: {problem.strerror or problem}"
        """The same without the number of the error."""


@asynccontextmanager
async def bind(server: AbstractAsyncContextManager[S], where: str) -> AsyncIterator[S]:
    """Enter a server's context; ListenError if it cannot begin, and only then."""
    async with AsyncExitStack() as stack:
        try:
            serving = await stack.enter_async_context(server)
        except OSError as error:
            raise ListenError(where, error) from error
        yield serving


def serve_metrics(registry: CollectorRegistry, port: int, option: str = "--metrics-port") -> None:
    """Serve metrics on a port of this machine for as long as the process lives; 0 for none."""
    if not port:
        return
    try:
        start_http_server(port, addr="127.0.0.1", registry=registry)
    except OSError as error:
        raise ListenError(f"{option} {port}", error) from error
