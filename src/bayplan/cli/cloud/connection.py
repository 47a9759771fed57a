"""Which cloud to ask, and what happens if it does not answer."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bayplan.base.configfiles import ConfigFileError
from bayplan.cli.errors import EXIT_NO, BadInput
from bayplan.cli.text.output import notices, printable
from bayplan.nodegroups import InvalidRequestError, NodeGroupError, NotFoundError, Provider
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import VARIABLE, read_config

Cloud = Annotated[
    str,
    Parameter(
        show_default=False,
        help="The cloud: its socket, or a cloud-config file as Cluster Autoscaler takes it; else"
        f" ${VARIABLE}, which `bayplan up --cloud-address` and `--cloud-socket` print.",
    ),
]


def ask(cloud: str, work: Callable[[Provider], Awaitable[int]]) -> int:
    """Ask the cloud; if it refuses, say so and give the exit code for "no"."""
    place = cloud or os.environ.get(VARIABLE, "")
    if not place:
        raise BadInput(f"which cloud? give --cloud, or export {VARIABLE} as `bayplan up` prints it")
    try:
        return asyncio.run(_ask(Path(place.removeprefix("unix:")), work))
    except (NotFoundError, InvalidRequestError, ConfigFileError) as problem:
        raise BadInput(printable(str(problem))) from problem
    except NodeGroupError as problem:
        notices().print(f"error: {printable(str(problem))}", style="red")
        return EXIT_NO


async def _ask(place: Path, work: Callable[[Provider], Awaitable[int]]) -> int:
    async with ExternalGrpc(read_config(place)) as provider:
        return await work(provider)
