"""Leader election: one at a time, whatever the clocks and the network do."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayplan.client import Access, Client, ClusterLease, Elector
from bayplan.client.election import LeadershipLostError, LeaseTiming
from bayplan.kube.coordination import Lease
from tests.client.elections import SharedLease, SilentLock, SkewedClock, UnreliableLock
from tests.client.proxies import RudeProxy
from tests.clocks import VirtualClock

pytestmark = pytest.mark.whole


async def for_ever() -> None:
    await asyncio.Event().wait()


async def stop(*tasks: asyncio.Future[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_the_first_candidate_leads_and_gives_the_lease_back(
    client: Client, namespace: str
) -> None:
    elector = Elector(ClusterLease(client, namespace, "role"), "one")
    seen: list[Lease] = []

    async def lead() -> None:
        assert elector.is_leader()
        seen.append(await client.get(Lease, namespace, "role"))

    await elector.run(lead)
    held, given_back = seen[0].spec, (await client.get(Lease, namespace, "role")).spec
    assert (held.holder_identity, held.lease_duration_seconds) == ("one", 15)
    assert held.acquire_time == held.renew_time
    assert not given_back.holder_identity
    assert not elector.is_leader()


async def test_a_second_candidate_waits_and_then_takes_over_at_once(
    client: Client, namespace: str
) -> None:
    first = Elector(ClusterLease(client, namespace, "role"), "one")
    second = Elector(ClusterLease(client, namespace, "role"), "two")
    leading, over = asyncio.Event(), asyncio.Event()

    async def lead() -> None:
        leading.set()
        await over.wait()

    one = asyncio.ensure_future(first.run(lead))
    await leading.wait()
    assert not await second.try_once()
    assert second.holder == "one"
    over.set()
    await one
    assert await second.try_once()
    spec = (await client.get(Lease, namespace, "role")).spec
    assert (spec.holder_identity, spec.lease_transitions) == ("two", 1)


async def test_being_cancelled_stops_the_work_before_the_lease_is_given_back() -> None:
    clock = VirtualClock()
    shared = SharedLease(clock)
    elector = Elector(UnreliableLock(shared, Random(1), 0), "one", clock=clock, rng=Random(1))
    holder_when_stopped: list[str | None] = []

    async def lead() -> None:
        try:
            await for_ever()
        finally:
            assert shared.lease is not None
            holder_when_stopped.append(shared.lease.spec.holder_identity)

    task = asyncio.ensure_future(elector.run(lead))
    await clock.advance(5)
    await stop(task)
    assert holder_when_stopped == ["one"]
    assert shared.lease is not None
    assert shared.lease.spec.holder_identity == ""


@pytest.mark.parametrize(("again", "seconds"), [(0, 10), (1, 2), (2, 0)])
async def test_the_more_often_it_is_cancelled_the_less_it_waits_for_the_release(
    again: int, seconds: float, caplog: pytest.LogCaptureFixture
) -> None:
    clock = VirtualClock()
    lock = SilentLock(SharedLease(clock), Random(1), 0)
    task = asyncio.ensure_future(Elector(lock, "one", clock=clock, rng=Random(1)).run(for_ever))
    await clock.advance(1)
    lock.silent = True
    task.cancel()
    for _ in range(again):
        await clock.advance(0)
        task.cancel()
    began = clock.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await clock.run(_result_of(task))
    assert clock.monotonic() - began == seconds
    assert "lease here/role: not released in time, it will expire" in caplog.messages


async def _result_of(task: asyncio.Future[None]) -> None:
    await task


async def test_a_leader_that_cannot_renew_stops_before_anyone_else_starts() -> None:
    clock = VirtualClock()
    shared = SharedLease(clock)
    lock = UnreliableLock(shared, Random(1), 0)
    one = Elector(lock, "one", clock=clock, rng=Random(1))
    two = Elector(UnreliableLock(shared, Random(2), 0), "two", clock=clock, rng=Random(2))
    stopped: list[float] = []

    async def lead() -> None:
        try:
            await for_ever()
        finally:
            stopped.append(clock.monotonic())

    led = asyncio.ensure_future(one.run(lead))
    await clock.advance(3)
    lock.partitioned = True
    waiting = asyncio.ensure_future(two.acquire())
    while not waiting.done():
        assert not (one.is_leader() and two.is_leader())
        await clock.jump()
    assert stopped[0] < clock.monotonic()
    assert two.is_leader()
    await asyncio.wait({led})
    assert isinstance(led.exception(), LeadershipLostError)


async def test_a_leader_keeps_its_lease_through_a_short_outage() -> None:
    clock = VirtualClock()
    shared = SharedLease(clock)
    lock = UnreliableLock(shared, Random(1), 0)
    elector = Elector(lock, "one", clock=clock, rng=Random(1))
    task = asyncio.ensure_future(elector.run(for_ever))
    await clock.advance(3)
    lock.partitioned = True
    await clock.advance(6)
    lock.partitioned = False
    await clock.advance(60)
    assert elector.is_leader()
    assert shared.lease is not None
    assert shared.lease.spec.lease_transitions == 0
    await stop(task)


async def test_an_error_of_the_work_comes_out_and_the_lease_is_given_back() -> None:
    clock = VirtualClock()
    shared = SharedLease(clock)
    elector = Elector(UnreliableLock(shared, Random(1), 0), "one", clock=clock)

    async def lead() -> None:
        raise LookupError("a bug")

    with pytest.raises(LookupError, match="a bug"):
        await clock.run(elector.run(lead))
    assert shared.lease is not None
    assert shared.lease.spec.holder_identity == ""


async def test_a_leader_behind_a_cut_network_is_replaced(
    access: Access, client: Client, namespace: str
) -> None:
    clock = VirtualClock()
    async with RudeProxy(access) as proxy, Client(proxy.access) as behind:
        cut_off = Elector(ClusterLease(behind, namespace, "role"), "one", clock=clock)
        other = Elector(ClusterLease(client, namespace, "role"), "two", clock=clock)
        assert await cut_off.try_once()
        proxy.refuse(refusing=True)
        proxy.cut()
        assert not await other.try_once()
        await clock.advance(14.9)
        assert not cut_off.is_leader()
        assert not await other.try_once()
        await clock.advance(0.2)
        assert await other.try_once()


def test_timings_that_would_allow_two_leaders_are_refused() -> None:
    for lease, renew, retry in ((10, 10, 2), (15, 2, 2), (15, 10, 0), (15.5, 10, 2)):
        with pytest.raises(ValueError, match=r"leader election needs|whole seconds"):
            LeaseTiming(lease, renew, retry)
    with pytest.raises(ValueError, match="needs an identity"):
        Elector(UnreliableLock(SharedLease(VirtualClock()), Random(1), 0), "")


async def one_at_a_time(seed: int, candidates: int, trouble: float) -> int:
    """Elections for some minutes of trouble; how often the leader changed."""
    rng, clock = Random(seed), VirtualClock()
    shared = SharedLease(clock)
    locks = [UnreliableLock(shared, rng, trouble) for _ in range(candidates)]
    electors = [
        Elector(
            lock,
            f"candidate-{number}",
            clock=SkewedClock(clock, rng.uniform(-9000, 9000), rng.uniform(0.9, 1.1)),
            rng=rng,
        )
        for number, lock in enumerate(locks)
    ]
    tasks = [asyncio.ensure_future(keep_running(elector)) for elector in electors]
    await clock.advance(0)
    while clock.monotonic() < 600:
        rng.choice(locks).partitioned = rng.random() < trouble
        assert await clock.jump()
        assert sum(elector.is_leader() for elector in electors) <= 1
    await clock.run(stop(*tasks))
    return (shared.lease and shared.lease.spec.lease_transitions) or 0


async def keep_running(elector: Elector) -> None:
    while True:
        with suppress(LeadershipLostError):
            await elector.run(for_ever)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.sampled_from([0.0, 0.05, 0.2, 0.5]))
def test_there_are_never_two_leaders(seed: int, candidates: int, trouble: float) -> None:
    asyncio.run(one_at_a_time(seed, candidates, trouble))


def test_in_calm_times_the_leader_stays() -> None:
    assert asyncio.run(one_at_a_time(seed=1, candidates=3, trouble=0)) == 0


def test_in_troubled_times_leadership_moves_on() -> None:
    assert asyncio.run(one_at_a_time(seed=1, candidates=3, trouble=0.3)) > 0
