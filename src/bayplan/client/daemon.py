"""The shape of a daemon, and the one runner of daemons.

    main = elect(lead, "bayplan-scheduler")
    await until_signalled(main(client, identity=f"{host}_{uuid}"))

`lead` is all that a daemon does: a coroutine function of one client, which also has the clock and
the random numbers to use (`client.clock`, `client.rng`). It works until it is cancelled, and then
ends in order. As a process it is elected first, and cancelled when the lease is lost or a signal
comes; in a simulation `lead` is called directly, since there is nobody to compete with.

`DaemonProcess` runs a daemon as a process, and all of ours run so:

    process = DaemonProcess(connect=..., lead=elected(lead, settings, identity), health=..., ...)
    sys.exit(process.run())

It connects, binds the health endpoint, leads until that ends or a signal comes, and gives the exit
code:
0 after a signal, 1 after a failure, which is reported in one line. An address that cannot be bound
is a ListenError, and nothing else is.
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
from bayplan.client.election import ClusterLease, Elector, LeaderSettings, Timing
from bayplan.client.errors import ClientError
from bayplan.client.serving.binding import bind
from bayplan.client.serving.health import HealthPages, serve_health
from bayplan.client.signals import until_signalled

Lead: TypeAlias = Callable[[Client], Awaitable[None]]
C = TypeVar("C")
LoopFactory: TypeAlias = Callable[[], asyncio.AbstractEventLoop]


class Main(Protocol):
    """A daemon as a process runs it."""

    async def __call__(self, client: Client, identity: str) -> None:
        """Lead, once elected; LeadershipLostError if the lease is lost."""
        ...


def elect(
    lead: Lead, name: str, namespace: str = "kube-system", timing: Timing | None = None
) -> Main:
    """A daemon of which only one leads at a time: whoever holds the lease of that name."""

    async def main(client: Client, identity: str) -> None:
        lock = ClusterLease(client, namespace, name)
        elector = Elector(lock, identity, timing, clock=client.clock, rng=client.rng)
        await elector.run(lambda: lead(client))

    return main


def elected(lead: Lead, settings: LeaderSettings, identity: str) -> Lead:
    """Lead only while holding the lease, if the settings ask for an election."""
    if not settings.elect:
        return lead
    main = elect(lead, settings.name, settings.namespace, settings.timing)
    return lambda client: main(client, identity)


def process_identity() -> str:
    """Return a name for this process that no other has, as leases and events show it."""
    return f"{socket.gethostname()}_{uuid4()}"


def fastest_loop() -> LoopFactory | None:
    """uvloop's event loop where there is one; None for the standard one."""
    try:
        import uvloop  # noqa: PLC0415 - not on every platform
    except ImportError:
        return None
    return uvloop.new_event_loop


@dataclass(frozen=True, slots=True)
class HealthEndpoint:
    """Where health, readiness and metrics are served, and what they say."""

    option: str
    """The option that names the address, to be blamed if it cannot be bound."""
    host: str
    port: int
    pages: HealthPages
    announce: Callable[[str], None]
    """Called with the URL once it is served."""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[None]:
        """Serve for as long as the context lasts; ListenError if the address cannot be bound."""
        where = f"{self.option} {self.host}:{self.port}"
        async with bind(serve_health(self.host, self.port, self.pages), where) as url:
            self.announce(url)
            yield


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonProcess(Generic[C]):
    """A daemon as a process: its work, its health endpoint, its end and its exit code."""

    connect: Callable[[], AbstractAsyncContextManager[C]]
    """Opens what it works with, mostly a client, for as long as it runs."""
    lead: Callable[[C], Awaitable[None]]
    """All that it does, until it is cancelled."""
    report: Callable[[str], None]
    """Reports the failure that ends it."""
    failures: tuple[type[Exception], ...] = (ClientError,)
    """What ends it with exit code 1 and one line; anything else is a defect, with its traceback."""
    health: HealthEndpoint | None = None
    loaded: asyncio.Event | None = None
    """Set once the cluster is in memory: garbage is looked for among what comes after it."""
    loop_factory: LoopFactory | None = field(default_factory=fastest_loop)

    def run(self) -> int:
        """Run until it ends or a signal comes; the exit code. ListenError if it cannot listen."""
        with asyncio.Runner(loop_factory=self.loop_factory) as runner:
            return runner.run(self._run())

    async def _run(self) -> int:
        try:
            await until_signalled(self._serve())
        except self.failures as error:
            self.report(str(error))
            return 1
        return 0

    async def _serve(self) -> None:
        async with self.connect() as client, AsyncExitStack() as stack:
            if self.health is not None:
                await stack.enter_async_context(self.health.served())
            if self.loaded is not None:
                settling = asyncio.ensure_future(_settle(self.loaded))
                stack.callback(settling.cancel)
            await self.lead(client)


async def _settle(loaded: asyncio.Event) -> None:
    """Once the cluster is loaded, look for garbage among what comes after it, and seldom."""
    await loaded.wait()
    gc.collect()
    freeze()
    gc.set_threshold(*RARELY)
