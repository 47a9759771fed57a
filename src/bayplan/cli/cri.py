"""`bayplan cri`: serve images per runtime handler on a CRI socket."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from prometheus_client import CollectorRegistry

from bayplan.cli.errors import BadInput
from bayplan.cli.images.output import complain
from bayplan.cli.options.daemon import run_daemon
from bayplan.cli.text.output import notices
from bayplan.client.daemon import DaemonProcess
from bayplan.client.logs import log_plainly
from bayplan.client.serving.endpoints import serve_metrics
from bayplan.images.cri.server import serve
from bayplan.images.platforms import host_platform
from bayplan.images.settings import CriSettings, load_settings
from bayplan.images.store.layout import StoreInUseError


def cri(
    *,
    socket: Path,
    root: Path = Path("/var/lib/bayplan/images"),
    config: Path | None = None,
    metrics_port: Annotated[int, Parameter(name="--metrics-port")] = 0,
) -> int:
    """Serve CRI v1's image service, with an image for each runtime handler.

    Parameters
    ----------
    socket
        The unix socket to listen on.
    root
        The folder in which images are stored.
    config
        A containerd configuration file: runtimes with their guest_platform, registry mirrors,
        pinned images. By default there is a single handler for this machine's platform.
    metrics_port
        The port of Prometheus metrics on 127.0.0.1; 0 for none.
    """
    log_plainly()
    try:
        settings = load_settings(config, host_platform())
    except (ValueError, OSError) as problem:
        raise BadInput(str(problem)) from problem
    names = ", ".join(settings.handlers.names())

    async def wait(metrics: CollectorRegistry) -> None:
        serve_metrics(metrics, metrics_port)
        notices().print(f"serving {socket} for the runtime handlers {names}")
        await asyncio.Event().wait()

    process = DaemonProcess(
        connect=lambda: _served(socket, root, settings),
        lead=wait,
        report=complain,
        failures=(OSError,),
        loop_factory=None,
    )
    return run_daemon(process)


@asynccontextmanager
async def _served(
    socket: Path, root: Path, settings: CriSettings
) -> AsyncIterator[CollectorRegistry]:
    """Serve images; BadInput if the server cannot start."""
    async with AsyncExitStack() as stack:
        try:
            metrics = await stack.enter_async_context(serve(socket, root, settings))
        except (ValueError, OSError, StoreInUseError) as problem:
            raise BadInput(str(problem)) from problem
        yield metrics
