"""Reading a live cluster once, as a dump of it would be read; nothing is ever written."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from bayplan.base.pacing import RetryPolicy
from bayplan.cli.errors import BadInput
from bayplan.cli.options.access import ClusterAccess, reaching
from bayplan.cli.text.output import printable
from bayplan.client.client import Client, Tuning, connect
from bayplan.client.errors import ForbiddenError, TimedOutError
from bayplan.client.wire.transport import Limits
from bayplan.kube.loading import Loaded, Progress
from bayplan.observe.permissions import Needs
from bayplan.observe.reading import NotAllowedError, read_once

T = TypeVar("T")
QPS, BURST, IN_FLIGHT = 50.0, 50, 4
"""How much a command asks of a server at most: requests a second, at once, and side by side."""
ATTEMPTS = 4


def read_live(
    access: ClusterAccess,
    needs: Needs,
    *,
    patience: float,
    namespace: str = "",
    progress: Progress | None = None,
) -> Loaded:
    """All objects that are needed and may be listed; BadInput if there is no answer without more.

    Of kinds that may not be listed in all namespaces, those of the one given.
    """

    async def read(client: Client) -> Loaded:
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
    """What a question to a cluster comes to; BadInput if it cannot be asked, or may not be."""
    try:
        return ask(access, question, patience)
    except NotAllowedError as error:
        hint = "" if namespace or not error.elsewhere else "; -n NAMESPACE reads one namespace"
        raise BadInput(printable(f"{error}{hint}; docs/live.md has the permissions")) from None


def ask(
    access: ClusterAccess,
    question: Callable[[Client], Awaitable[T]],
    patience: float,
    tuning: Tuning | None = None,
    *,
    takes_dumps: bool = True,
) -> T:
    """What a question to a cluster comes to; BadInput if the cluster cannot be asked at all, and
    the hint that a dump would do, unless the command takes none.
    """

    async def asked() -> T:
        with reaching(takes_dumps=takes_dumps):
            wanted = tuning or _tuning(patience)
            connected = connect(access.kubeconfig, context=access.context, tuning=wanted)
        async with connected as client:
            with reaching(client.access.server, takes_dumps=takes_dumps):
                await _greet(client, patience)
                return await question(client)

    return asyncio.run(asked())


def _tuning(patience: float) -> Tuning:
    return Tuning(
        qps=QPS,
        burst=BURST,
        in_flight=IN_FLIGHT,
        limits=Limits(connect=min(patience, 10.0), answer=patience),
        retries=RetryPolicy(attempts=ATTEMPTS),
    )


async def version_of(client: Client) -> str:
    """What the server says that it is; nothing if it may not be asked."""
    try:
        return (await client.version()).git_version
    except ForbiddenError:
        return ""


async def _greet(client: Client, patience: float) -> None:
    """Make sure that this is an API server, and that it answers: to lists, one that is none would
    say that it has no such kind, and one that hangs would be asked again and again.
    """
    try:
        async with asyncio.timeout(patience):
            await client.version()
    except TimeoutError:
        raise TimedOutError(f"no answer within {patience:g} seconds") from None
    except ForbiddenError:  # not even that may be asked; lists will say more
        return
