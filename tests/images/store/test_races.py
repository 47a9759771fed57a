"""Pulls, removals, cancellations and a stumbling registry, all at once: the store stays right."""

import asyncio
import contextlib
import random

import grpc
import pytest
from aiohttp import web

from tests.images.parts.hostile import HostileRegistry
from tests.images.parts.layouts import digest_of, linux, tar_of
from tests.images.parts.service import Service

HANDLERS = ("", "kata", "arm")
ACTIONS = 150


def push_related_images(hostile: HostileRegistry) -> list[str]:
    """Images that share layers crosswise, for two processors each."""
    builder = hostile.builder
    layers = [tar_of((f"layer-{n}", str(n).encode() * 500)) for n in range(4)]
    names = []
    for number in range(6):
        chosen = [layers[number % 2], layers[2 + number % 2], tar_of((f"own-{number}", b"x"))]
        entries = [
            builder.entry(*chosen, tar_of(("cpu", cpu.encode())), platform=linux(cpu))
            for cpu in ("amd64", "arm64")
        ]
        names.append(hostile.tag(builder.index(*entries), f"image:{number}"))
    return names


@pytest.mark.parametrize("seed", range(3))
async def test_any_mixture_of_requests_leaves_a_right_store(
    service: Service, hostile: HostileRegistry, seed: int
) -> None:
    chance = random.Random(seed)
    names = push_related_images(hostile)

    async def stumble(request: web.Request) -> web.Response | None:
        lot = chance.random()
        if "/blobs/" in request.path and lot < 0.1:
            return web.Response(body=b"wrong")
        return web.Response(status=503) if lot < 0.2 else None

    hostile.faults.append(stumble)
    await asyncio.gather(*(act(service, chance, names) for _ in range(ACTIONS)))
    await everything_listed_is_whole(service)
    for image in await service.list():
        await service.remove(image.id, image.spec.runtime_handler)
    for place in ("blobs", "chains", "ingest"):
        assert list((service.root / place).iterdir()) == []


async def act(service: Service, chance: random.Random, names: list[str]) -> None:
    name, handler, lot = chance.choice(names), chance.choice(HANDLERS), chance.random()
    if lot < 0.3:
        await service.remove(name, handler)
        return
    pulling = asyncio.ensure_future(service.pull(name, handler))
    if lot < 0.5:
        for _ in range(chance.randrange(30)):
            await asyncio.sleep(0)
        pulling.cancel()
    with contextlib.suppress(grpc.aio.AioRpcError, asyncio.CancelledError):
        await pulling


async def everything_listed_is_whole(service: Service) -> None:
    await idle(service)
    listed = await service.list()
    for blob in (service.root / "blobs").iterdir():
        assert digest_of(blob.read_bytes()) == blob.name.replace("-", ":", 1)
    for image in listed:
        handler = image.spec.runtime_handler
        status = await service.status(image.id, handler)
        assert status is not None
        assert (service.root / "blobs" / image.id.replace(":", "-")).exists()
    cpus = {path.read_text() for path in service.root.glob("chains/*/cpu")}
    wanted = {"arm64" if i.spec.runtime_handler == "arm" else "amd64" for i in listed}
    assert cpus == wanted


async def idle(service: Service) -> None:
    """Wait, request by request, until no pull is under way, not even a cancelled one."""
    await service.list()
    while service.metrics.get_sample_value("bayplan_cri_image_pulls_in_flight"):
        await service.list()
