"""Progress beside the CRI: whoever watches an image hears of its pulls."""

import asyncio

import grpc
import pytest

from bayplan.images.cri import progress_pb2 as progress
from bayplan.images.cri.client import socket_target
from tests.images.parts.hostile import HostileRegistry
from tests.images.parts.layouts import tar_of
from tests.images.parts.service import Service


def watching(
    channel: grpc.aio.Channel, image: str, handler: str = ""
) -> "grpc.aio.UnaryStreamCall[progress.WatchRequest, progress.Step]":
    call = channel.unary_stream(
        "/bayplan.images.v1.Progress/Watch",
        progress.WatchRequest.SerializeToString,
        progress.Step.FromString,
    )
    return call(progress.WatchRequest(image=image, runtime_handler=handler))


async def test_a_watcher_hears_every_layer_from_waiting_to_done(
    service: Service, hostile: HostileRegistry
) -> None:
    name = hostile.tag(hostile.builder.image(tar_of(("f", b"x" * 1000))))
    async with grpc.aio.insecure_channel(socket_target(str(service.socket))) as channel:
        call = watching(channel, name, "kata")
        await call.initial_metadata()
        pulling = asyncio.ensure_future(service.pull(name, "kata"))
        phases: dict[str, list[str]] = {}
        async for step in call:
            phases.setdefault(step.digest, []).append(step.phase)
            if step.phase == "done" and "unpacking" in phases[step.digest]:
                assert (step.done, step.total) == (step.total, step.total)
                break
        await pulling
        call.cancel()
    layer = next(steps for steps in phases.values() if "unpacking" in steps)
    assert layer == ["waiting", "downloading", "done", "unpacking", "done"]


async def test_watching_for_an_unknown_handler_is_refused(service: Service) -> None:
    async with grpc.aio.insecure_channel(socket_target(str(service.socket))) as channel:
        call = watching(channel, "image:1", "gvisor")
        with pytest.raises(grpc.aio.AioRpcError) as failure:
            await call.read()
        assert failure.value.code() is grpc.StatusCode.INVALID_ARGUMENT
