"""Content and work that pulls share: one flight a digest, a few downloads at once."""

import asyncio

import grpc
import pytest
from aiohttp import web

from bayplan.images.singleflight import SingleFlight, uninterrupted
from tests.images.parts.hostile import HostileRegistry
from tests.images.parts.layouts import linux, tar_of
from tests.images.parts.service import Service


def images_of_one_base(hostile: HostileRegistry, count: int) -> list[str]:
    base = tar_of(("base", b"shared"))
    return [
        hostile.tag(
            hostile.builder.image(base, tar_of((f"own-{n}", b"x")), tar_of((f"more-{n}", b"y"))),
            f"image:{n}",
        )
        for n in range(count)
    ]


async def test_a_blob_is_fetched_once_for_every_handler_and_image(
    service: Service, hostile: HostileRegistry
) -> None:
    names = images_of_one_base(hostile, 4)
    pulls = [service.pull(name, handler) for name in names for handler in ("", "kata")]
    await asyncio.gather(*pulls)
    fetched = hostile.paths("/blobs/")
    assert len(fetched) == len(set(fetched))


async def test_content_that_is_here_is_not_fetched_again(
    service: Service, hostile: HostileRegistry
) -> None:
    (name,) = images_of_one_base(hostile, 1)
    await service.pull(name)
    before = len(hostile.paths(""))
    await service.pull(name, "kata")
    await service.pull(name)
    assert len(hostile.paths("")) == before
    assert len(hostile.paths("", "HEAD")) == 3


async def test_three_downloads_at_once_and_no_more(
    service: Service, hostile: HostileRegistry
) -> None:
    waiting: list[asyncio.Event] = []
    arrived = asyncio.Event()
    most = 0

    async def hold_layers(request: web.Request) -> web.Response | None:
        nonlocal most
        if "/blobs/" in request.path and len(hostile.paths("/blobs/")) > 1:
            mine = asyncio.Event()
            waiting.append(mine)
            most = max(most, len(waiting))
            if len(waiting) == 3:
                arrived.set()
            await mine.wait()
        return None

    layers = [tar_of((f"layer-{n}", b"x")) for n in range(8)]
    hostile.faults.append(hold_layers)
    pulling = asyncio.ensure_future(service.pull(hostile.tag(hostile.builder.image(*layers))))
    await arrived.wait()
    while not pulling.done():
        if waiting:
            waiting.pop(0).set()
        await asyncio.sleep(0)
    await pulling
    assert most == 3


async def test_removing_an_image_spares_what_a_pull_under_way_relies_on(
    service: Service, hostile: HostileRegistry
) -> None:
    one, other = images_of_one_base(hostile, 2)
    await service.pull(one)
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def pause(request: web.Request) -> web.Response | None:
        if "/blobs/" in request.path:
            reached.set()
            await go_on.wait()
        return None

    hostile.faults.append(pause)
    pulling = asyncio.ensure_future(service.pull(other))
    await reached.wait()
    await service.remove(one)
    go_on.set()
    await pulling
    assert await service.status(other) is not None
    assert (await service.list())[0].repo_tags == [other]


async def test_a_cancelled_pull_leaves_nothing_and_does_not_hurt_others(
    service: Service, hostile: HostileRegistry
) -> None:
    (name,) = images_of_one_base(hostile, 1)
    reached, go_on, joined = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def pause(request: web.Request) -> web.Response | None:
        if len(hostile.paths("", "HEAD")) == 2:
            joined.set()
        if "/blobs/" in request.path:
            reached.set()
            await go_on.wait()
        return None

    hostile.faults.append(pause)
    first = asyncio.ensure_future(service.pull(name))
    await reached.wait()
    second = asyncio.ensure_future(service.pull(name, "kata"))
    await joined.wait()
    first.cancel()
    go_on.set()
    await second
    assert [image.spec.runtime_handler for image in await service.list()] == ["kata"]
    await service.remove(name, "kata")
    assert list((service.root / "blobs").iterdir()) == []


def contents(service: Service) -> list[str]:
    """What is in the store, unfinished downloads aside."""
    places = ("blobs", "chains", "ingest")
    return sorted(path.name for place in places for path in (service.root / place).iterdir())


async def test_a_failed_pull_spares_what_others_use(
    service: Service, hostile: HostileRegistry
) -> None:
    builder = hostile.builder
    base = tar_of(("base", b"shared"))
    good = hostile.tag(builder.image(base), "image:good")
    await service.pull(good)
    before = contents(service)
    top = builder.image(base, tar_of(("bad", b"")), platform=linux("amd64"))
    name = hostile.tag(top, "image:bad")

    async def broken(request: web.Request) -> web.Response | None:
        known = request.path.rpartition("/")[2].replace(":", "-") in before
        return None if known or "/blobs/" not in request.path else web.Response(body=b"bad")

    hostile.faults.append(broken)
    with pytest.raises(grpc.aio.AioRpcError):
        await service.pull(name)
    assert contents(service) == before
    assert await service.status(good) is not None


async def test_followers_of_a_failed_flight_try_for_themselves() -> None:
    flights: SingleFlight[str] = SingleFlight()
    started, fail = asyncio.Event(), asyncio.Event()
    runs: list[str] = []

    async def failing() -> None:
        runs.append("leader")
        started.set()
        await fail.wait()
        raise ValueError("the leader's own trouble")

    async def working() -> None:
        runs.append("follower")

    leader = asyncio.ensure_future(flights.run("key", failing))
    await started.wait()
    follower = asyncio.ensure_future(flights.run("key", working))
    await asyncio.sleep(0)
    fail.set()
    with pytest.raises(ValueError, match="own trouble"):
        await leader
    await follower
    assert runs == ["leader", "follower"]


async def test_work_that_nobody_waits_for_is_cancelled() -> None:
    flights: SingleFlight[str] = SingleFlight()
    started, ended = asyncio.Event(), asyncio.Event()

    async def long() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    waiting = asyncio.ensure_future(flights.run("key", long))
    await started.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert ended.is_set()


async def test_what_must_not_be_cut_is_finished_first() -> None:
    going, go_on = asyncio.Event(), asyncio.Event()
    done: list[int] = []

    async def work() -> None:
        going.set()
        await go_on.wait()
        done.append(1)

    task = asyncio.ensure_future(uninterrupted(work()))
    await going.wait()
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done == [1]
