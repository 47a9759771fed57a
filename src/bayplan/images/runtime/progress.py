"""How far a pull has come, from runtimes that say: ours does, beside the CRI on the same socket."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc
import grpc.aio

from bayplan.images.cri import progress_pb2
from bayplan.images.cri.client import CHANNEL_OPTIONS, socket_target
from bayplan.images.runtime.objects import ImageSpec

_WATCH = "/bayplan.images.v1.Progress/Watch"


@dataclass(frozen=True, slots=True)
class PullStep:
    """One piece of content, and how much of it is here."""

    digest: str
    phase: str
    done: int
    total: int


async def pull_steps(socket: str, spec: ImageSpec) -> AsyncIterator[PullStep]:
    """The steps of an image's pulls, until cancelled; ends at once if the runtime says none."""
    async with grpc.aio.insecure_channel(socket_target(socket), options=CHANNEL_OPTIONS) as channel:
        watch = channel.unary_stream(
            _WATCH,
            progress_pb2.WatchRequest.SerializeToString,
            progress_pb2.Step.FromString,
        )
        request = progress_pb2.WatchRequest(image=spec.image, runtime_handler=spec.handler)
        try:
            async for step in watch(request):
                yield PullStep(step.digest, step.phase, step.done, step.total)
        except grpc.aio.AioRpcError:
            return
