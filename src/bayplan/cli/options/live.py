"""Reads a live cluster once, like a dump; nothing is written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bayplan.base.durations import DurationError, parse_duration
from bayplan.base.flowcontrol import RetryPolicy
from bayplan.cli.errors import BadInput
from bayplan.cli.options.access import ClusterAccess, reaching
from bayplan.cli.text.output import printable
from bayplan.client.client import Client, ClientOptions, connect
from bayplan.client.errors import ForbiddenError, TimedOutError
from bayplan.client.wire.transport import RequestLimits
from bayplan.kube.manifests import LoadResult, Progress
from bayplan.observe.permissions import RequiredKinds
from bayplan.observe.reader import NotAllowedError, read_once

T = TypeVar("T")
QPS, BURST, IN_FLIGHT = 50.0, 50, 4
"""The client limits of a command: requests per second, burst, and parallel requests."""
ATTEMPTS = 4


def read_live(
    access: ClusterAccess,
    needs: RequiredKinds,
    *,
    patience: float,
    namespace: str = "",
    progress: Progress | None = None,
) -> LoadResult:
    """Return all objects that are needed and may be listed; BadInput if vital ones may not be.

    Kinds that may not be listed in all namespaces are read in the given one.
    """

    async def read(client: Client) -> LoadResult:
        loaded = await read_once(client, needs, namespace=namespace, progress=progress)
        loaded.server_version = await version_of(client)
        return loaded

    return asking(access, read, patience, namespace)


def asking(
    access: ClusterAccess,
    question: Callable[[Client], Awaitable[T]],
    patience: float,
    namespace: str = "",
) -> T:
    """Run a read of the cluster; BadInput if it cannot be reached or permissions are missing."""
    try:
        return ask(access, question, patience)
    except NotAllowedError as error:
        hint = "" if namespace or not error.is_namespaced else "; -n NAMESPACE reads one namespace"
        raise BadInput(printable(f"{error}{hint}; docs/live.md has the permissions")) from None


def ask(
    access: ClusterAccess,
    question: Callable[[Client], Awaitable[T]],
    patience: float,
    options: ClientOptions | None = None,
    *,
    takes_dumps: bool = True,
) -> T:
    """Run a read of the cluster; BadInput if it cannot be reached.

    The message suggests a dump, unless the command takes none.
    """

    async def asked() -> T:
        with reaching(takes_dumps=takes_dumps):
            wanted = options or _options(patience)
            connected = connect(access.kubeconfig, context=access.context, options=wanted)
        async with connected as client:
            with reaching(client.access.server, takes_dumps=takes_dumps):
                await _greet(client, patience)
                return await question(client)

    return asyncio.run(asked())


def _options(patience: float) -> ClientOptions:
    return ClientOptions(
        qps=QPS,
        burst=BURST,
        in_flight=IN_FLIGHT,
        limits=RequestLimits(connect=min(patience, 10.0), answer=patience),
        retries=RetryPolicy(attempts=ATTEMPTS),
    )


async def version_of(client: Client) -> str:
    """Return the server's version; empty if it may not be read."""
    try:
        return (await client.version()).git_version
    except ForbiddenError:
        return ""


async def _greet(client: Client, patience: float) -> None:
    """Make sure that this is an API server and that it responds.

    Otherwise lists would report missing kinds, or be retried again and again.
    """
    try:
        async with asyncio.timeout(patience):
            await client.version()
    except TimeoutError:
        raise TimedOutError(f"no answer within {patience:g} seconds") from None
    except ForbiddenError:  # the lists will report missing permissions
        return


def request_seconds(written: str) -> float:
    """Return a request timeout in seconds."""
    try:
        return parse_duration(written) or 0.1
    except DurationError as error:
        raise BadInput(f"--request-timeout: {error}") from None


def log_errors_only() -> None:
    """Log errors only: kinds that cannot be read are reported once, not on every retry."""
    logging.getLogger("bayplan").setLevel(logging.ERROR)
