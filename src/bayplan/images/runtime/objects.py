"""What a container runtime says about images, free of any wire format.

An image on a node is known by its id *and* the runtime handler it was pulled for: `ImageKey`. A
runtime that knows nothing of handlers leaves the handler empty everywhere, and the key is then the
id alone, exactly as it was before handlers existed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


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
