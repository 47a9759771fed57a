"""A daemon leads while it is elected, and ends in order when it is told to stop."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from random import Random

import pytest

from bayplan.base.clock import LoopClock
from bayplan.client import Client
from bayplan.client.daemon import elect
from bayplan.client.election import LeadershipLostError
from bayplan.client.signals import run_until_signal, termination_signals
from bayplan.embedded.apiserver.config import PlaneConfig
from bayplan.embedded.apiserver.controlplane import ControlPlane
from bayplan.embedded.inprocess import in_process_client
from bayplan.kube.coordination import Lease


def new_plane() -> ControlPlane:
    return ControlPlane(PlaneConfig(clock=LoopClock(), rng=Random(1)))


@pytest.fixture
def hang_up() -> Iterator[Callable[[signal.Handlers], object]]:
    """Sets what SIGHUP does by itself: whoever runs the tests may have it ignored."""
    before = signal.getsignal(signal.SIGHUP)
    yield lambda action: signal.signal(signal.SIGHUP, action)
    signal.signal(signal.SIGHUP, before)


def test_a_closed_terminal_ends_it_unless_nohup_runs_it(
    hang_up: Callable[[signal.Handlers], object],
) -> None:
    hang_up(signal.SIG_DFL)
    assert signal.SIGHUP in termination_signals()
    hang_up(signal.SIG_IGN)
    assert signal.SIGHUP not in termination_signals()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_a_signal_ends_it_in_order(
    number: int, hang_up: Callable[[signal.Handlers], object]
) -> None:
    hang_up(signal.SIG_DFL)
    done: list[str] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            done.append("tidied up")

    await run_until_signal(work())
    assert done == ["tidied up"]


async def test_a_second_signal_ends_its_clean_up_and_a_third_would_kill(
    hang_up: Callable[[signal.Handlers], object], caplog: pytest.LogCaptureFixture
) -> None:
    hang_up(signal.SIG_DFL)
    before = [signal.getsignal(number) for number in termination_signals()]
    third: list[object] = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.Event().wait()
            finally:
                third.extend(signal.getsignal(number) for number in termination_signals())

    with caplog.at_level("INFO"):
        await run_until_signal(work())
    assert third == [signal.SIG_DFL] * 3
    assert [signal.getsignal(number) for number in termination_signals()] == before
    assert [record.getMessage() for record in caplog.records] == [
        "received SIGTERM, shutting down",
        "received SIGINT during shutdown, ending without clean-up",
    ]


async def test_work_that_ends_or_fails_or_is_cancelled_does_so_without_a_signal() -> None:
    async def fail() -> None:
        raise ValueError("no")

    async def forever() -> None:
        await asyncio.Event().wait()

    await run_until_signal(asyncio.sleep(0))
    with pytest.raises(ValueError, match="no"):
        await run_until_signal(fail())
    task = asyncio.create_task(run_until_signal(forever()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.virtual
async def test_of_two_only_one_leads_and_the_other_takes_over() -> None:
    async with new_plane() as plane:
        led: list[tuple[str, float]] = []

        async def lead(client: Client) -> None:
            led.append((str(client.access.server), client.clock.monotonic()))
            await asyncio.Event().wait()

        main = elect(lead, "it")
        clients = [in_process_client(plane, rng=Random(seed)) for seed in (1, 2)]
        first = asyncio.create_task(main(clients[0], "first"))
        await asyncio.sleep(1)
        second = asyncio.create_task(main(clients[1], "second"))
        await asyncio.sleep(3600)
        assert len(led) == 1
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.sleep(10)
        assert len(led) == 2
        lease = await clients[0].get(Lease, "kube-system", "it")
        assert lease.spec.holder_identity == "second"
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


@pytest.mark.virtual
async def test_a_leader_whose_lease_is_taken_ends() -> None:
    async with new_plane() as plane:
        client = in_process_client(plane, rng=Random(1))
        ended = asyncio.Event()

        async def lead(_: Client) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(elect(lead, "it")(client, "first"))
        await asyncio.sleep(60)
        resource = await client.discover("coordination.k8s.io/v1", "Lease")
        lease = await client.get(resource, "kube-system", "it")
        spec = lease["spec"]
        assert isinstance(spec, dict)
        spec["holderIdentity"] = "somebody"
        await client.update(lease, resource)
        with pytest.raises(LeadershipLostError):
            await task
        assert ended.is_set()


@pytest.mark.virtual
async def test_a_second_signal_ends_a_leaders_clean_up_before_it_releases_its_lease(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with new_plane() as plane:
        client = in_process_client(plane, rng=Random(1))
        holders: list[str | None] = []

        async def lead(_: Client) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                try:
                    await asyncio.sleep(3600)
                finally:
                    holders.append((await _lease(client)).spec.holder_identity)

        task = asyncio.create_task(elect(lead, "it")(client, "first"))
        await asyncio.sleep(60)
        task.cancel()
        await asyncio.sleep(1)
        assert (await _lease(client)).spec.holder_identity == "first"
        assert holders == []
        began = client.clock.monotonic()
        with caplog.at_level("INFO"):
            task.cancel()
            await asyncio.wait([task])
        assert client.clock.monotonic() - began < 1
        assert holders == ["first"]
        assert (await _lease(client)).spec.holder_identity == ""
        assert "lease kube-system/it: released" in caplog.messages


async def _lease(client: Client) -> Lease:
    return await client.get(Lease, "kube-system", "it")
