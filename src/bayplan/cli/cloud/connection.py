"""The connection to a cloud provider over gRPC."""

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
from bayplan.nodegroups import InvalidRequestError, NodeGroupError, NodeGroupNotFoundError, Provider
from bayplan.nodegroups.externalgrpc.client import ExternalGrpc
from bayplan.nodegroups.externalgrpc.config import VARIABLE, read_config

Cloud = Annotated[
    str,
    Parameter(
        show_default=False,
        help="The cloud: its socket, or a cloud-config file in Cluster Autoscaler's format; by"
        f" default ${VARIABLE}, which `bayplan up --cloud-address` and `--cloud-socket` print.",
    ),
]


def ask(cloud: str, work: Callable[[Provider], Awaitable[int]]) -> int:
    """Run work with the provider; report its errors and return the exit code."""
    place = cloud or os.environ.get(VARIABLE, "")
    if not place:
        raise BadInput(
            f"no cloud given: use --cloud, or export {VARIABLE} as `bayplan up` prints it"
        )
    try:
        return asyncio.run(_ask(Path(place.removeprefix("unix:")), work))
    except (NodeGroupNotFoundError, InvalidRequestError, ConfigFileError) as problem:
        raise BadInput(printable(str(problem))) from problem
    except NodeGroupError as problem:
        notices().print(f"error: {printable(str(problem))}", style="red")
        return EXIT_NO


async def _ask(place: Path, work: Callable[[Provider], Awaitable[int]]) -> int:
    async with ExternalGrpc(read_config(place)) as provider:
        return await work(provider)
