"""The cloud of `bayplan up` for other processes: served while the cluster runs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from bayplan.cli.daemon import listen_address
from bayplan.cli.errors import BadInput
from bayplan.embedded.cloud.serving import CloudPlaces, serve_cloud
from bayplan.nodegroups import Provider, UnavailableError
from bayplan.nodegroups.externalgrpc.config import VARIABLE


def cloud_places(socket: Path | None, address: str | None) -> CloudPlaces | None:
    """Where the command line wants the cloud; None if it does not."""
    if socket is None and address is None:
        return None
    return CloudPlaces(
        socket, None if address is None else listen_address(address, "--cloud-address")
    )


@asynccontextmanager
async def served(provider: Provider, places: CloudPlaces | None) -> AsyncIterator[None]:
    """Serve the cloud if it is wanted, and say where."""
    if places is None:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="bayplan-cloud-") as folder:
        try:
            async with serve_cloud(provider, places, Path(folder), datetime.now(UTC)) as cloud:
                sys.stdout.write(f"serving the cloud at {' and '.join(cloud.addresses)}\n")
                sys.stdout.write(f"export {VARIABLE}={cloud.config}\n")
                sys.stdout.flush()
                yield
        except UnavailableError as problem:
            raise BadInput(str(problem)) from problem
