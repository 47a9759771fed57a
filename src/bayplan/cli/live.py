"""Reading a live cluster once, as a dump of it would be read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from bayplan.cli.access import ClusterAccess
from bayplan.cli.errors import BadInput
from bayplan.cli.output import notices, printable
from bayplan.client.client import Client
from bayplan.client.errors import ClientError, MalformedError, NotFoundError
from bayplan.client.verbs.reading import Selection
from bayplan.kube.meta import KubeObject

Kinds = Sequence[type[KubeObject]]


def read_live(access: ClusterAccess, kinds: Kinds) -> list[KubeObject]:
    """All objects of some kinds; kinds that the cluster does not have are none.

    What cannot be read as what it is is told on standard error. BadInput if the cluster cannot be
    asked.
    """
    try:
        return asyncio.run(_read(access, kinds))
    except ClientError as error:
        raise BadInput(printable(str(error))) from error


async def _read(access: ClusterAccess, kinds: Kinds) -> list[KubeObject]:
    async with access.connect() as client:
        found = await asyncio.gather(*(_all(client, kind) for kind in kinds))
    return [one for some in found for one in some]


async def _all(client: Client, kind: type[KubeObject]) -> list[KubeObject]:
    try:
        page = await client.collect(kind, Selection(), unfit=_tell)
    except NotFoundError:
        return []
    return list(page.items)


def _tell(error: MalformedError) -> None:
    notices().print(f"left out: {printable(str(error))}", style="yellow")
