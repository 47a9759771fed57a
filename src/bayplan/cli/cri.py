"""`bayplan cri`: serve images per runtime handler on a CRI socket."""

import asyncio
import logging
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from prometheus_client import CollectorRegistry, start_http_server

from bayplan.cli.errors import BadInput
from bayplan.cli.output import notices
from bayplan.client.daemon import ending_signals
from bayplan.images.cri.app import serve
from bayplan.images.platforms.host import host_platform
from bayplan.images.settings import Settings, load_settings
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
        Where images are kept.
    config
        A containerd configuration file: runtimes with their guest_platform, registry mirrors,
        pinned images. Without one there is a single handler for this machine's platform.
    metrics_port
        Expose Prometheus metrics on this port of 127.0.0.1; 0 for none.
    """
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    try:
        settings = load_settings(config, host_platform())
        asyncio.run(_serve(socket, root, settings, metrics_port))
    except (ValueError, OSError, StoreInUseError) as problem:
        raise BadInput(str(problem)) from problem
    return 0


async def _serve(socket: Path, root: Path, settings: Settings, metrics_port: int) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ending_signals():
        loop.add_signal_handler(number, stopped.set)
    async with serve(socket, root, settings) as metrics:
        _expose(metrics, metrics_port)
        names = ", ".join(settings.handlers.names())
        notices().print(f"serving {socket} for the runtime handlers {names}")
        await stopped.wait()


def _expose(metrics: CollectorRegistry, port: int) -> None:
    if port:
        start_http_server(port, addr="127.0.0.1", registry=metrics)
