"""`bayplan ui`: a page of the cluster, served to a browser."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.cli.apiserver import listen_address
from bayplan.cli.cluster import (
    Gates,
    Missing,
    Partial,
    Source,
    judged_as,
    load_objects,
    profile_from,
)
from bayplan.cli.errors import EXIT_OK, BadInput
from bayplan.cli.output import printable
from bayplan.cli.ui_answers import answers
from bayplan.client.daemon import until_signalled
from bayplan.kube.clock import WallClock
from bayplan.ui.backend import Backend
from bayplan.ui.page import Page
from bayplan.ui.serving import Guard, Serving, new_token, serve
from bayplan.ui.still import still_page

SHORTEST_TOKEN = 16


def ui(  # noqa: PLR0913 - one for each option
    *,
    filename: Source = (),
    listen: str = "127.0.0.1:0",
    token_file: Path | None = None,
    host_name: Annotated[tuple[str, ...], Parameter(negative_iterable=())] = (),
    groups: Path | None = None,
    partial: Partial = False,
    feature_gates: Gates = "",
    missing_driver: Missing = "hold-back",
) -> int:
    """Serve a page of the cluster: nodes as bays, volumes against limits, queues, who waits and
    why, what the autoscaler does next.

    Of a dump (-f). It only shows: there is no way to change anything through it. It is for this
    machine unless --listen says otherwise, and then only with a token.

    Exit codes: 0 it was served until interrupted, 2 bad input.

    Parameters
    ----------
    listen
        Address and port to listen on; port 0 takes a free one.
    token_file
        A file with the token that a reader needs. Without it, one is made up and printed where one
        is needed: when others than this machine may ask.
    host_name
        A further name under which the page is served, such as that of a proxy; may be repeated.
    groups
        Node groups with their templates, bounds and prices, as `bayplan plan` has them.
    """
    rules = profile_from(feature_gates, missing_driver)
    how = serving(listen, token_file, host_name)
    loaded = load_objects(filename, "ui", partial=partial)
    page = still_page(
        loaded.objects,
        ", ".join(filename),
        WallClock(),
        profile=judged_as(rules, None),
        answers=answers(rules, groups),
        notes=[f"left out: {printable(str(one))}" for one in loaded.problems[:20]],
    )
    asyncio.run(until_signalled(_serve(page, how)))
    return EXIT_OK


async def _serve(page: Page, how: Serving) -> None:
    async with served_page(page, how), page.running():
        await asyncio.Event().wait()


@contextlib.asynccontextmanager
async def served_page(backend: Backend, how: Serving) -> AsyncIterator[str]:
    """Serve a page, and say where; BadInput if that cannot be."""
    try:
        async with serve(backend, how) as url:
            shown = f"{url}?token={how.guard.token}" if how.guard.token else url
            sys.stdout.write(f"page: {shown}\n")
            sys.stdout.flush()
            yield url
    except OSError as error:
        raise BadInput(f"--listen {how.host}:{how.port}: {error.strerror or error}") from error


def serving(listen: str, token_file: Path | None, names: Sequence[str] = ()) -> Serving:
    """How a page is served; with a token wherever others than this machine may ask."""
    host, port = listen_address(listen)
    token = _token(token_file) if token_file is not None else ""
    if not token and not _is_this_machine(host):
        token = new_token()
    return Serving(host, port, Guard(token, frozenset(name.lower() for name in names)))


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
            f"--token-file {path}: a token has at least {SHORTEST_TOKEN} characters and no space"
        )
    return token
