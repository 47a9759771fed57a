"""`bayplan apiserver`: a Kubernetes API server in one process, with its data in one file."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Literal

from bayplan.base.garbage import RARELY
from bayplan.cli.errors import EXIT_OK, BadInput, Unwritable
from bayplan.cli.options.daemon import listen_address
from bayplan.cli.options.flags import Switch
from bayplan.cli.options.server import AuthOptions, kubeconfig_place
from bayplan.client.daemon import fastest_loop
from bayplan.client.signals import termination_signals
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import TokenFileError
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.apiserver.store.database import StoreError


def apiserver(  # noqa: PLR0913 - one for each option of the command
    *,
    data: Path | None = None,
    listen: str = "127.0.0.1:0",
    kubeconfig: Path | None = None,
    who: AuthOptions | None = None,
    allow_privileged: Switch = False,
    controllers: Literal["all", "own"] = "all",
    durability: Literal["process", "power"] = "process",
) -> int:
    """Serve the Kubernetes API until interrupted.

    Parameters
    ----------
    data
        The file to store all objects in; by default they are kept in memory.
    listen
        Address and port; port 0 chooses a free one, and with --data the same one every time.
    kubeconfig
        The file to write the administrator's kubeconfig to; by default a temporary one, which is
        removed when the server stops.
    allow_privileged
        Allow privileged containers, as most clusters do.
    controllers
        The controllers to run: all of this server, such as garbage collection and namespaces, or
        only those of kube-apiserver itself, for use with a kube-controller-manager.
    durability
        What an acknowledged write survives: a crash of the process, or also a power failure.
    """
    host, port = listen_address(listen)
    who = who or AuthOptions()
    with contextlib.ExitStack() as stack:
        config = ServerConfig(
            host=host,
            port=port,
            data=data,
            kubeconfig=kubeconfig or stack.enter_context(kubeconfig_place(None)),
            tokens=who.tokens,
            authorization=who.authorization,
            allow_privileged=allow_privileged,
            controllers=controllers,
            durability=durability,
        )
        gc.set_threshold(*RARELY)
        with asyncio.Runner(loop_factory=fastest_loop()) as runner:
            runner.run(_serve(config, show_kubeconfig=kubeconfig is None))
    return EXIT_OK


async def _serve(config: ServerConfig, *, show_kubeconfig: bool) -> None:
    try:
        server = ApiServer(config)
    except (StoreError, TokenFileError, OSError) as problem:
        raise BadInput(str(problem)) from problem
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in termination_signals():
        loop.add_signal_handler(number, stopped.set)
    try:
        async with server:
            sys.stdout.write(f"serving {server.url}\n")
            if show_kubeconfig:
                sys.stdout.write(f"export KUBECONFIG={config.kubeconfig}\n")
            sys.stdout.flush()
            await _first_of(stopped.wait(), server.wait())
    except StoreError as problem:
        raise Unwritable(str(problem)) from problem


async def _first_of(*work: Coroutine[object, object, object]) -> None:
    """Wait until one of them ends, and raise its error if it has one; cancel the others."""
    tasks = [asyncio.ensure_future(one) for one in work]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.gather(*done)
