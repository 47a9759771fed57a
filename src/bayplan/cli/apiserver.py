"""`bayplan apiserver`: a Kubernetes API server in one process, with its data in one file."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import tempfile
from collections.abc import Coroutine, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from bayplan.base.garbage import RARELY
from bayplan.cli.errors import EXIT_OK, BadInput, Unwritable
from bayplan.cli.options.daemon import listen_address
from bayplan.cli.options.flags import Switch
from bayplan.client.daemon import fastest_loop
from bayplan.client.signals import ending_signals
from bayplan.embedded.apiserver.config import ServerConfig
from bayplan.embedded.apiserver.identity import TokenFileError, check_place
from bayplan.embedded.apiserver.server import ApiServer
from bayplan.embedded.apiserver.store.database import StoreError


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class AuthOptions:
    """Who is known to an API server, and who may do what."""

    tokens: Path | None = None
    """Further users: CSV lines of token,user,uid,"group1,group2"."""
    authorization: Annotated[Literal["rbac", "always-allow"], Parameter(show_choices=True)] = (
        "always-allow"
    )
    """Who may do what: as RBAC objects say, or everybody everything."""


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
        Keep everything in this file; without it, in memory.
    listen
        Address and port; port 0 takes a free one, and with --data the same one every time.
    kubeconfig
        Write the administrator's kubeconfig here; without it, into a temporary folder while the
        server runs.
    allow_privileged
        Let containers be privileged, as most real clusters do.
    controllers
        What is kept in order here: all that this server can, garbage and namespaces included, or
        only what kube-apiserver does itself, for use with a kube-controller-manager.
    durability
        What an acknowledged write survives: the death of the process, or also a power cut.
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
            runner.run(_serve(config, tell=kubeconfig is None))
    return EXIT_OK


@contextlib.contextmanager
def kubeconfig_place(wanted: Path | None) -> Iterator[Path]:
    """Where a kubeconfig goes that is of no use afterwards, so it is removed, with the folders that
    had to be made for it, as kubectl would make them.
    """
    if wanted is None:
        with tempfile.TemporaryDirectory(prefix="bayplan-") as folder:
            yield Path(folder, "kubeconfig")
        return
    new = [one for one in wanted.absolute().parents if not one.exists()]
    try:
        try:
            check_place(wanted)
        except OSError as problem:
            raise BadInput(f"--kubeconfig {problem}") from problem
        try:
            yield wanted
        finally:
            wanted.unlink(missing_ok=True)
    finally:
        _remove_empty(new)


def _remove_empty(folders: Iterable[Path]) -> None:
    """The inner ones first; where somebody has put something else, it stays."""
    with contextlib.suppress(OSError):
        for one in folders:
            one.rmdir()


async def _serve(config: ServerConfig, *, tell: bool) -> None:
    try:
        server = ApiServer(config)
    except (StoreError, TokenFileError, OSError) as problem:
        raise BadInput(str(problem)) from problem
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in ending_signals():
        loop.add_signal_handler(number, stopped.set)
    try:
        async with server:
            sys.stdout.write(f"serving {server.url}\n")
            if tell:
                sys.stdout.write(f"export KUBECONFIG={config.kubeconfig}\n")
            sys.stdout.flush()
            await _first_of(stopped.wait(), server.wait())
    except StoreError as problem:
        raise Unwritable(str(problem)) from problem


async def _first_of(*work: Coroutine[object, object, object]) -> None:
    """Return when one of them is done, as it ends; the others are given up."""
    tasks = [asyncio.ensure_future(one) for one in work]
    done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in others:
        task.cancel()
    await asyncio.gather(*done)
