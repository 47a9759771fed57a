"""A container runtime's images, independent of the wire format, with runtime handlers or without.

An image on a node is identified by its id *and* the runtime handler it was pulled for: `ImageKey`.
A runtime that does not support handlers leaves the handler empty, and the key is the id alone.

With the gate off, handlers are hidden (`HandlerlessRuntime`): entries that differ only in their
handler look like one image. This is why a clean-up is needed after the gate was switched, see
`bayplan.images.agent.image_gc_loop`.
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
    """A call to the runtime failed; `code` is the name of gRPC's status code."""

    def __init__(self, call: str, code: str, detail: str) -> None:
        super().__init__(f"{call}: {code}: {detail}")
        self.call = call
        self.code = code
        self.detail = detail


class RuntimeUnavailableError(RuntimeCallError):
    """The runtime's socket cannot be reached."""


class RuntimeTimeoutError(RuntimeCallError):
    """The runtime did not respond in time."""


class UnusableResponseError(RuntimeCallError):
    """The runtime's response cannot be used, such as an image without an id."""

    def __init__(self, call: str, detail: str) -> None:
        super().__init__(call, "UNUSABLE_ANSWER", detail)


@dataclass(frozen=True, slots=True, order=True)
class ImageKey:
    """An image id and its runtime handler; an empty handler is the default one."""

    id: str
    handler: str = ""

    def __str__(self) -> str:
        return f"{self.id},{self.handler}" if self.handler else self.id


@dataclass(frozen=True, slots=True)
class ImageSpec:
    """The CRI's ImageSpec: how a client names an image."""

    image: str
    handler: str = ""
    annotations: Mapping[str, str] = field(default_factory=dict)
    user_specified_image: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """An image of the runtime."""

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
        """The key of this image on the node."""
        return ImageKey(self.id, self.handler)

    @property
    def names(self) -> tuple[str, ...]:
        """All its tags and digests."""
        return self.tags + self.digests


@dataclass(frozen=True, slots=True)
class RegistryAuth:
    """Credentials for one pull; never shown in a repr."""

    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    auth: str = field(default="", repr=False)
    server_address: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """The pod of a request to the runtime."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


@dataclass(frozen=True, slots=True)
class FilesystemUsage:
    """The usage of a filesystem of the runtime."""

    mountpoint: str
    used_bytes: int
    inodes_used: int
    timestamp_ns: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeVersion:
    """The name and version of a runtime."""

    name: str
    version: str
    api_version: str


class ImageRuntime(Protocol):
    """The calls of the image manager and the GC manager to a runtime."""

    async def list_images(self) -> list[Image]:
        """Return every image on the node, one entry for each (id, handler)."""
        ...

    async def image_status(self, spec: ImageSpec) -> Image | None:
        """Return the image of that name; None if it is not present."""
        ...

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        """Pull an image; return the runtime's reference to it."""
        ...

    async def remove_image(self, spec: ImageSpec) -> None:
        """Remove an image of one handler; no error if it is not present."""
        ...

    async def image_filesystems(self) -> list[FilesystemUsage]:
        """Return the image filesystems."""
        ...

    async def images_in_use(self) -> set[ImageKey]:
        """Return the images of all containers, running or not."""
        ...


_WATCH = "/bayplan.images.v1.Progress/Watch"


@dataclass(frozen=True, slots=True)
class PullStep:
    """The progress of one blob of a pull."""

    digest: str
    phase: str
    done: int
    total: int


async def pull_steps(socket: str, spec: ImageSpec) -> AsyncIterator[PullStep]:
    """Yield the steps of an image's pulls until cancelled; none if the runtime has no progress."""
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
class HandlerlessRuntime:
    """Forwards every call without its handler, and merges images by id."""

    runtime: ImageRuntime

    async def list_images(self) -> list[Image]:
        """Return every image on the node, one entry for each id."""
        merged: dict[str, Image] = {}
        for image in await self.runtime.list_images():
            known = merged.get(image.id)
            merged[image.id] = _without_handler(image) if known is None else _merge(known, image)
        return list(merged.values())

    async def image_status(self, spec: ImageSpec) -> Image | None:
        """Return the image of that name, whatever its handler."""
        image = await self.runtime.image_status(replace(spec, handler=""))
        return image and _without_handler(image)

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        """Pull an image for the default handler."""
        return await self.runtime.pull_image(replace(spec, handler=""), auth, pod)

    async def remove_image(self, spec: ImageSpec) -> None:
        """Remove an image without a handler."""
        await self.runtime.remove_image(replace(spec, handler=""))

    async def image_filesystems(self) -> list[FilesystemUsage]:
        """Return the image filesystems."""
        return await self.runtime.image_filesystems()

    async def images_in_use(self) -> set[ImageKey]:
        """Return the ids of the images of all containers."""
        return {ImageKey(key.id) for key in await self.runtime.images_in_use()}


def with_gate(runtime: ImageRuntime, *, enabled: bool) -> ImageRuntime:
    """Return the runtime, without handlers if the gate is off."""
    return runtime if enabled else HandlerlessRuntime(runtime)


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
