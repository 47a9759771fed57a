"""Daemons: their common form, and `DaemonProcess`, which runs all of them.

    main = elect(lead, "bayplan-scheduler")
    await until_signalled(main(client, identity=f"{host}_{uuid}"))

`lead` does all of a daemon's work: a coroutine function of one client, which also has the clock and
the random numbers to use (`client.clock`, `client.rng`). It works until it is cancelled, and then
ends in order. As a process it is elected first, and cancelled when the lease is lost or a signal
comes; in a simulation `lead` is called directly, since there are no other candidates.

`DaemonProcess` runs a daemon as a process:

    process = DaemonProcess(connect=..., lead=elected(lead, settings, identity), health=..., ...)
    sys.exit(process.run())

It connects, binds the health endpoint, leads until that ends or a signal comes, and returns the
exit code: 0 after a signal, 1 after a failure, which is reported in one line. An address that
cannot be bound raises ListenError.

The first signal cancels `lead`, which ends in order, and then releases the lease. A second signal
cancels that clean-up, too; the lease is still released if this takes no more than two seconds. A
third signal kills the process.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar
from uuid import uuid4

from bayplan.base.garbage import RARELY, freeze
from bayplan.client.client import Client
from bayplan.client.election import ClusterLease, Elector, LeaderElectionSettings, LeaseTiming
from bayplan.client.errors import ClientError
from bayplan.client.serving.endpoints import bind_server
from bayplan.client.serving.health import HealthPages, serve_health
from bayplan.client.signals import run_until_signal

Lead: TypeAlias = Callable[[Client], Awaitable[None]]
C = TypeVar("C")
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


class Main(Protocol):
    """A daemon's main function, as its process calls it."""

    async def __call__(self, client: Client, identity: str) -> None:
        """Lead once elected; raise LeadershipLostError if the lease is lost."""
        ...


def elect(
    lead: Lead, name: str, namespace: str = "kube-system", timing: LeaseTiming | None = None
) -> Main:
    """Return the main function of a daemon that leads only while it holds the named lease."""

    async def main(client: Client, identity: str) -> None:
        lock = ClusterLease(client, namespace, name)
        elector = Elector(lock, identity, timing, clock=client.clock, rng=client.rng)
        await elector.run(lambda: lead(client))

    return main


def elected(lead: Lead, settings: LeaderElectionSettings, identity: str) -> Lead:
    """Wrap `lead` so that it runs only while holding the lease, if election is on."""
    if not settings.elect:
        return lead
    main = elect(lead, settings.name, settings.namespace, settings.timing)
    return lambda client: main(client, identity)


def process_identity() -> str:
    """Return a unique name for this process, for leases and events."""
    return f"{socket.gethostname()}_{uuid4()}"


def fastest_loop() -> LoopFactory | None:
    """Return uvloop's event loop factory where it is installed; None for the standard loop."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


@dataclass(frozen=True, slots=True)
class HealthEndpoint:
    """The address and the pages of health, readiness and metrics."""

    option: str
    """The option that names the address, for the error if it cannot be bound."""
    host: str
    port: int
    pages: HealthPages
    announce: Callable[[str], None]
    """Called with the URL once it is served."""

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        """Serve while the context is open; ListenError if the address cannot be bound."""
        address = f"{self.option} {self.host}:{self.port}"
        async with bind_server(serve_health(self.host, self.port, self.pages), address) as url:
            self.announce(url)
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonProcess(Generic[C]):
    """A daemon as a process: its work, health endpoint, shutdown and exit code."""

    connect: Callable[[], AbstractAsyncContextManager[C]]
    """Opens what it works with, mostly a client, for the time that it runs."""
    lead: Callable[[C], Awaitable[None]]
    """Does its work until it is cancelled."""
    report: Callable[[str], None]
    """Reports the failure that ends it."""
    failures: tuple[type[Exception], ...] = (ClientError,)
    """Errors that end it with exit code 1 and one line; others are defects, with a traceback."""
    health: HealthEndpoint | None = None
    loaded: asyncio.Event | None = None
    """Set once the cluster is in memory, whose objects are then left out of garbage collection."""
    loop_factory: LoopFactory | None = field(default_factory=fastest_loop)

    def run(self) -> int:
        """Run until it ends or a signal comes; return the exit code. Raises ListenError."""
        with asyncio.Runner(loop_factory=self.loop_factory) as runner:
            return runner.run(self._run())

    async def _run(self) -> int:
        try:
            await run_until_signal(self._serve())
        except self.failures as error:
            self.report(str(error))
            return 1
        return 0

    async def _serve(self) -> None:
        async with self.connect() as client, AsyncExitStack() as stack:
            if self.health is not None:
                await stack.enter_async_context(self.health.serve())
            if self.loaded is not None:
                freezing = asyncio.ensure_future(_freeze_when_loaded(self.loaded))
                stack.callback(freezing.cancel)
            await self.lead(client)


async def _freeze_when_loaded(loaded: asyncio.Event) -> None:
    """Once the cluster is loaded, keep its objects out of garbage collection; collect rarely."""
    await loaded.wait()
    gc.collect()
    freeze()
    gc.set_threshold(*RARELY)
