"""What a container runtime says about images, free of any wire format; with handlers or without.

An image on a node is known by its id *and* the runtime handler it was pulled for: `ImageKey`. A
runtime that knows nothing of handlers leaves the handler empty everywhere, and the key is then the
id alone, exactly as it was before handlers existed.

Images are then known by name alone, as before the feature. Entries that differ only in their
handler look like one image; this is why turning the gate off (or on again) owes a clean-up, see
`bayplan.images.agent.housekeeping`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import grpc
import grpc.aio

from bayplan.images.cri import progress_pb2
from bayplan.images.cri.client import CHANNEL_OPTIONS, socket_target


class RuntimeCallError(Exception):
    """A call to the runtime failed; `code` is gRPC's name for how."""

    def __init__(self, call: str, code: str, detail: str) -> None:
        super().__init__(f"{call}: {code}: {detail}")
        self.call = call
        self.code = code
        self.detail = detail


class RuntimeUnavailableError(RuntimeCallError):
    """Nobody answers on the socket."""


class RuntimeTimeoutError(RuntimeCallError):
    """The runtime took longer than it may."""


class UnusableAnswerError(RuntimeCallError):
    """The runtime answered with something no client can use, such as an image without an id."""

    def __init__(self, call: str, detail: str) -> None:
        super().__init__(call, "UNUSABLE_ANSWER", detail)


@dataclass(frozen=True, slots=True, order=True)
class ImageKey:
    """Which image, for which runtime handler; an empty handler is the default one."""

    id: str
    handler: str = ""

    def __str__(self) -> str:
        return f"{self.id},{self.handler}" if self.handler else self.id


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """How a client names an image to the runtime."""

    image: str
    handler: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    user_specified_image: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that the runtime holds."""

    id: str
    tags: tuple[str, ...] = ()
    digests: tuple[str, ...] = ()
    size: int = 0
    handler: str = ""
    pinned: bool = False
    uid: int | None = None
    username: str = ""

    @property
    def key(self) -> ImageKey:
        """What tells this image from every other on the node."""
        return ImageKey(self.id, self.handler)

    @property
    def names(self) -> tuple[str, ...]:
        """Every tag and digest it is known by."""
        return self.tags + self.digests


@dataclass(frozen=True, slots=True)
class RegistryAuth:
    """Credentials for one pull; none of it is ever shown."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    auth: str = field(default="", repr=False)
    server_address: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod on whose behalf the runtime acts."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class FilesystemUsage:
    """What a filesystem of the runtime holds."""

    mountpoint: str
    used_bytes: int
    inodes_used: int
    timestamp_ns: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """Who answers on the socket."""

    name: str
    version: str
    api_version: str


class ImageRuntime(Protocol):
    """What the image manager and the collector need of a runtime."""

    async def list_images(self) -> list[Image]:
        """Every image on the node, one entry for each (id, handler)."""
        ...

    async def image_status(self, spec: ImageSpec) -> Image | None:
        """The image so named, or None if the runtime does not hold it."""
        ...

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        """Pull an image; returns the reference by which the runtime knows it."""
        ...

    async def remove_image(self, spec: ImageSpec) -> None:
        """Remove an image of one handler; no error if it is not there."""
        ...

    async def image_filesystems(self) -> list[FilesystemUsage]:
        """The filesystems that hold images."""
        ...

    async def images_in_use(self) -> set[ImageKey]:
        """The images that the runtime's containers, running or not, were made from."""
        ...


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


@dataclass(frozen=True, slots=True)
class HandlerBlindRuntime:
    """Passes every call on without its handler and merges the answers by id."""

    runtime: ImageRuntime

    async def list_images(self) -> list[Image]:
        """Every image on the node, one entry for each id."""
        merged: dict[str, Image] = {}
        for image in await self.runtime.list_images():
            known = merged.get(image.id)
            merged[image.id] = _without_handler(image) if known is None else _merge(known, image)
        return list(merged.values())

    async def image_status(self, spec: ImageSpec) -> Image | None:
        """The image so named, whatever its handler."""
        image = await self.runtime.image_status(replace(spec, handler=""))
        return image and _without_handler(image)

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        """Pull an image for the default handler."""
        return await self.runtime.pull_image(replace(spec, handler=""), auth, pod)

    async def remove_image(self, spec: ImageSpec) -> None:
        """Remove an image without saying a handler."""
        await self.runtime.remove_image(replace(spec, handler=""))

    async def image_filesystems(self) -> list[FilesystemUsage]:
        """The filesystems that hold images."""
        return await self.runtime.image_filesystems()

    async def images_in_use(self) -> set[ImageKey]:
        """The ids of the images that containers were made from."""
        return {ImageKey(key.id) for key in await self.runtime.images_in_use()}


def with_gate(runtime: ImageRuntime, *, enabled: bool) -> ImageRuntime:
    """The runtime as the gate lets it be seen."""
    return runtime if enabled else HandlerBlindRuntime(runtime)


def _without_handler(image: Image) -> Image:
    return replace(image, handler="")


def _merge(known: Image, other: Image) -> Image:
    return replace(
        known,
        tags=_union(known.tags, other.tags),
        digests=_union(known.digests, other.digests),
        size=max(known.size, other.size),
        pinned=known.pinned or other.pinned,
    )


def _union(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one + other))
