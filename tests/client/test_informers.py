"""Informers follow a cluster through cuts, refusals and crowds, and lose nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from random import Random

import pytest

from bayplan.client import (
    Access,
    Change,
    Client,
    Informer,
    Informers,
    Selection,
    Untyped,
    merge,
    untyped,
)
from bayplan.client.objects import name_of
from bayplan.kube.coordination import Lease, LeaseSpec
from bayplan.kube.meta import ObjectMeta
from bayplan.kube.workloads import Namespace
from tests.client.proxies import RudeProxy
from tests.clocks import VirtualClock

CONFIG_MAPS = untyped("", "v1", "configmaps", "ConfigMap")
OURS = "bayplan-test"


def config_map(namespace: str, name: str, n: int = 0) -> Untyped:
    named = {"namespace": namespace, "name": name, "labels": {OURS: "yes"}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"n": str(n)}}


def ours(namespace: str) -> Selection:
    return Selection(namespace, labels=f"{OURS}=yes")


def number(item: Untyped) -> int:
    data = item["data"]
    assert isinstance(data, dict)
    return int(data["n"])


async def set_number(client: Client, namespace: str, name: str, n: int) -> None:
    change = merge({"data": {"n": str(n)}})
    await client.patch(CONFIG_MAPS, namespace, name, change=change)


@asynccontextmanager
async def running(informer: Informer[Untyped]) -> AsyncIterator[Informer[Untyped]]:
    task = asyncio.ensure_future(informer.run())
    try:
        yield informer
    finally:
        task.cancel()
        await asyncio.wait({task})


@asynccontextmanager
async def time_passing(clock: VirtualClock) -> AsyncIterator[None]:
    """Whoever waits for the clock waits no longer than it takes to notice."""

    async def pass_time() -> None:
        while True:
            await clock.until_sleeping()
            await clock.advance(60)

    task = asyncio.ensure_future(pass_time())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(informer: Informer[Untyped], done: Callable[[], bool]) -> None:
    """Wait until something that the informer's changes bring about is so."""
    with informer.subscribe(bound=10_000) as changes:
        async for _ in changes:
            if done():
                return


async def test_what_is_there_and_what_happens_is_told_in_order(
    client: Client, namespace: str
) -> None:
    await client.create(config_map(namespace, "old"))
    async with running(Informer(client, CONFIG_MAPS, ours(namespace))) as informer:
        await informer.synced.wait()
        with informer.subscribe() as changes:
            await client.create(config_map(namespace, "new"))
            await set_number(client, namespace, "new", 1)
            await client.delete(CONFIG_MAPS, namespace, "new")
            received = [
                (c.type, name_of(c.object)) for c in [await anext(changes) for _ in range(4)]
            ]
    assert received == [("added", "old"), ("added", "new"), ("updated", "new"), ("deleted", "new")]
    assert list(informer.objects) == [f"{namespace}/old"]


async def test_handlers_hear_everything_once(client: Client, namespace: str) -> None:
    heard: list[Change[Untyped]] = []
    informer = Informer(client, CONFIG_MAPS, ours(namespace))
    informer.on_change(heard.append)
    async with running(informer):
        await client.create(config_map(namespace, "a"))
        await until(informer, lambda: len(informer.objects) == 1)
    late: list[Change[Untyped]] = []
    informer.on_change(late.append)
    assert [change.type for change in heard] == ["added"]
    assert late == heard


async def test_no_event_is_lost_or_reordered_by_cut_connections(
    access: Access, client: Client, namespace: str
) -> None:
    seen: list[int] = []
    clock = VirtualClock()
    await client.create(config_map(namespace, "a"))
    async with (
        RudeProxy(access) as proxy,
        Client(proxy.access, clock=clock, rng=Random(1)) as behind,
        time_passing(clock),
        running(Informer(behind, CONFIG_MAPS, ours(namespace))) as informer,
    ):
        informer.on_change(lambda change: seen.append(number(change.object)))
        await informer.synced.wait()
        for n in range(1, 21):
            await set_number(client, namespace, "a", n)
            if n % 4 == 0:
                proxy.cut()
                await set_number(client, namespace, "a", 100 + n)
        await until(informer, lambda: seen[-1] == 120)
        assert informer.lists == 1
    expected = [0]
    for n in range(1, 21):
        expected += [n, 100 + n] if n % 4 == 0 else [n]
    assert seen == expected


async def test_a_server_that_is_gone_for_a_while_is_found_again(
    access: Access, client: Client, namespace: str
) -> None:
    clock = VirtualClock()
    async with (
        RudeProxy(access) as proxy,
        Client(proxy.access, clock=clock, rng=Random(2)) as behind,
        running(Informer(behind, CONFIG_MAPS, ours(namespace))) as informer,
    ):
        await informer.synced.wait()
        proxy.refuse(refusing=True)
        proxy.cut()
        for _ in range(5):
            await clock.until_sleeping()
            await clock.advance(30)
        assert informer.last_error is not None
        await client.create(config_map(namespace, "meanwhile"))
        proxy.behave()
        async with time_passing(clock):
            await until(informer, lambda: f"{namespace}/meanwhile" in informer.objects)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_whatever_happens_the_copy_ends_up_as_the_server_has_it(
    access: Access, client: Client, namespace: str, seed: int
) -> None:
    rng, clock = Random(seed), VirtualClock()
    lives: dict[str, list[Change[Untyped]]] = {}
    async with (
        RudeProxy(access) as proxy,
        Client(proxy.access, clock=clock, rng=Random(seed)) as behind,
        time_passing(clock),
        running(Informer(behind, CONFIG_MAPS, ours(namespace))) as informer,
    ):
        informer.on_change(lambda change: lives.setdefault(change.key, []).append(change))
        there: set[str] = set()
        for n in range(40):
            await do_something(client, namespace, rng, there, n)
            if rng.random() < 0.2:
                await informer.synced.wait()
                proxy.cut()
        await client.create(config_map(namespace, "last"))
        await until(informer, lambda: f"{namespace}/last" in informer.objects)
    listed = await client.list(CONFIG_MAPS, namespace, labels=f"{OURS}=yes")
    assert dict(informer.objects) == {f"{namespace}/{name_of(it)}": it for it in listed.items}
    for life in lives.values():
        check_life(life)


async def do_something(
    client: Client, namespace: str, rng: Random, there: set[str], n: int
) -> None:
    name = f"m{rng.randrange(6)}"
    if name not in there:
        there.add(name)
        await client.create(config_map(namespace, name, n))
    elif rng.random() < 0.4:
        there.discard(name)
        await client.delete(CONFIG_MAPS, namespace, name)
    else:
        await set_number(client, namespace, name, n)


def check_life(life: list[Change[Untyped]]) -> None:
    """Added first, changed while there, never twice the same, deleted before added again."""
    known: Untyped | None = None
    for change in life:
        if change.type == "added":
            assert known is None
        else:
            assert known is not None
            assert change.old == known
        known = None if change.type == "deleted" else change.new


async def test_a_slow_listener_slows_the_informer_and_misses_nothing(
    client: Client, namespace: str
) -> None:
    async with running(Informer(client, CONFIG_MAPS, ours(namespace))) as informer:
        await informer.synced.wait()
        with informer.subscribe(bound=2) as slow:
            for n in range(12):
                await client.create(config_map(namespace, f"m{n:02}", n))
            received = []
            async for change in slow:
                assert slow.waiting <= 2
                received.append(number(change.object))
                if len(received) == 12:
                    break
    assert received == list(range(12))


async def test_a_listener_that_joins_in_the_middle_of_a_list_hears_everything_once(
    client: Client, namespace: str
) -> None:
    for n in range(4):
        await client.create(config_map(namespace, f"m{n}", n))
    informer = Informer(client, CONFIG_MAPS, ours(namespace))
    with informer.subscribe(bound=1) as slow:
        async with running(informer):
            received = [number((await anext(slow)).object)]
            with informer.subscribe() as late:
                received += [number((await anext(slow)).object) for _ in range(3)]
                await informer.synced.wait()
                await client.create(config_map(namespace, "last", 9))
                heard = [number((await anext(late)).object) for _ in range(5)]
    assert received == [0, 1, 2, 3]
    assert heard == [0, 1, 2, 3, 9]


async def test_a_listener_that_leaves_lets_the_others_go_on(client: Client, namespace: str) -> None:
    async with running(Informer(client, CONFIG_MAPS, ours(namespace))) as informer:
        await informer.synced.wait()
        stuck = informer.subscribe(bound=1)
        with informer.subscribe() as other:
            for n in range(5):
                await client.create(config_map(namespace, f"m{n}", n))
            assert number((await anext(other)).object) == 0
            stuck.close()
            assert [number((await anext(other)).object) for _ in range(4)] == [1, 2, 3, 4]


async def test_typed_objects_are_followed_too(client: Client, namespace: str) -> None:
    informer = Informer(client, Lease, Selection(namespace))
    task = asyncio.ensure_future(informer.run())
    named = ObjectMeta(namespace=namespace, name="role")
    with informer.subscribe() as changes:
        await client.create(Lease(metadata=named, spec=LeaseSpec(holder_identity="me")))
        change = await anext(changes)
    task.cancel()
    await asyncio.wait({task})
    assert change.object.spec.holder_identity == "me"
    assert informer.objects[f"{namespace}/role"].kind == "Lease"


async def test_informers_of_the_same_thing_are_shared(client: Client, namespace: str) -> None:
    async with Informers(client) as informers:
        first = informers.of(CONFIG_MAPS, ours(namespace))
        assert informers.of(CONFIG_MAPS, ours(namespace)) is first
        assert informers.of(CONFIG_MAPS, Selection("other")) is not first
        namespaces = informers.of(Namespace)
        await informers.synced()
        assert namespace in namespaces.objects


async def test_an_informer_whose_handler_fails_takes_the_others_with_it(
    client: Client, namespace: str
) -> None:
    def broken(_: Change[Untyped]) -> None:
        raise LookupError("a bug")

    await client.create(config_map(namespace, "a"))

    async def body() -> None:
        async with Informers(client) as informers:
            informers.of(CONFIG_MAPS, ours(namespace)).on_change(broken)
            await asyncio.Event().wait()

    with pytest.raises(ExceptionGroup) as caught:
        await body()
    assert caught.group_contains(LookupError)


async def test_an_error_in_the_body_comes_out_as_it_is(client: Client) -> None:
    async def body() -> None:
        async with Informers(client) as informers:
            informers.of(Namespace)
            raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own"):
        await body()
