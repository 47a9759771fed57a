"""Options of commands that serve the web page: its address, its token, and serving it."""

from __future__ import annotations

import contextlib
import ipaddress
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from bayplan.cli.errors import BadInput
from bayplan.cli.options.daemon import listen_address
from bayplan.client.serving.endpoints import ListenError, bind_server
from bayplan.ui.backend import PageBackend
from bayplan.ui.server import Guard, PageServerOptions, new_token, serve

SHORTEST_TOKEN = 16


@contextlib.asynccontextmanager
async def served_page(backend: PageBackend, how: PageServerOptions) -> AsyncIterator[str]:
    """Serve a page, and print its address; BadInput if the address cannot be bound."""
    async with contextlib.AsyncExitStack() as stack:
        try:
            served = bind_server(serve(backend, how), f"--listen {how.host}:{how.port}")
            url = await stack.enter_async_context(served)
        except ListenError as error:
            raise BadInput(error.short) from error
        shown = f"{url}?token={how.guard.token}" if how.guard.token else url
        sys.stdout.write(f"page: {shown}\n")
        sys.stdout.flush()
        yield url


def serving(listen: str, token_file: Path | None, names: Sequence[str] = ()) -> PageServerOptions:
    """Return how to serve a page; with a token if other machines can reach the address."""
    host, port = listen_address(listen)
    token = _token(token_file) if token_file is not None else ""
    if not token and not _is_this_machine(host):
        token = new_token()
    return PageServerOptions(host, port, Guard(token, frozenset(name.lower() for name in names)))


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _token(path: Path) -> str:
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise BadInput(f"--token-file {path}: {reason}") from None
    if len(token) < SHORTEST_TOKEN or not token.isprintable() or " " in token:
        raise BadInput(
            f"--token-file {path}: the token must have at least {SHORTEST_TOKEN} characters and no"
            " spaces"
        )
    return token
