"""The shape of a daemon: wait to be elected, then lead until told to stop.

    main = elect(lead, "bayplan-scheduler")
    await until_signalled(main(client, identity=f"{host}_{uuid}"))

`lead` is all that a daemon does: a coroutine function of one client, which also has the clock and
the random numbers to use (`client.clock`, `client.rng`). It works until it is cancelled, and then
ends in order. As a process it is elected first, and cancelled when the lease is lost or a signal
comes; in a simulation `lead` is called directly, since there is nobody to compete with.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol, TypeAlias

from bayplan.client.client import Client
from bayplan.client.election.elector import Elector
from bayplan.client.election.locks import ClusterLease
from bayplan.client.election.record import Timing

Lead: TypeAlias = Callable[[Client], Awaitable[None]]


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


def ending_signals() -> tuple[signal.Signals, ...]:
    """What ends a program in order: also that its terminal was closed, unless `nohup` runs it."""
    ends = (signal.SIGINT, signal.SIGTERM)
    ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    return ends if ignored else (*ends, signal.SIGHUP)


async def until_signalled(work: Coroutine[object, object, None]) -> None:
    """Run that to its end; on a signal that ends programs cancel it, and see it end in order."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    stopping = False

    def stop() -> None:
        nonlocal stopping
        stopping = True
        task.cancel()

    signals = ending_signals()
    for number in signals:
        loop.add_signal_handler(number, stop)
    try:
        with contextlib.suppress(asyncio.CancelledError):
            await task
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
    if task.cancelled() and not stopping:
        raise asyncio.CancelledError
