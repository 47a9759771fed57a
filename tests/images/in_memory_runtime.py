"""A runtime in memory: for decisions about thousands of images, and for failures.

Whatever a real runtime can show is shown with a real one; this one is for property tests, and for
what a real runtime cannot be made to do at will (a removal that fails, a call that breaks).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from bayplan.images.image_gc import DiskUsage
from bayplan.images.runtime.objects import (
    FilesystemUsage,
    Image,
    ImageKey,
    ImageSpec,
    PodIdentity,
    RegistryAuth,
    RuntimeCallError,
)


@dataclass
class InMemoryRuntime:
    """Holds images; `offers` says what a pull of a name for a handler brings."""

    images: dict[ImageKey, Image] = field(default_factory=dict)
    offers: dict[tuple[str, str], Image] = field(default_factory=dict)
    in_use: set[ImageKey] = field(default_factory=set)
    stuck: set[ImageKey] = field(default_factory=set)
    broken: str = ""
    capacity: int = 100
    removed: list[ImageSpec] = field(default_factory=list)
    asked: list[ImageSpec] = field(default_factory=list)

    @classmethod
    def of(cls, images: Iterable[Image], capacity: int = 100) -> InMemoryRuntime:
        return cls({image.key: image for image in images}, capacity=capacity)

    def disk(self, mountpoint: str) -> DiskUsage:
        used = sum(image.size for image in self.images.values())
        return DiskUsage(self.capacity, max(0, self.capacity - used))

    async def list_images(self) -> list[Image]:
        self._break("ListImages")
        return list(self.images.values())

    async def image_status(self, spec: ImageSpec) -> Image | None:
        self._break("ImageStatus")
        self.asked.append(spec)
        for image in self.images.values():
            if image.handler == spec.handler and spec.image in (image.id, *image.names):
                return image
        return None

    async def pull_image(
        self, spec: ImageSpec, auth: RegistryAuth | None, pod: PodIdentity | None
    ) -> str:
        self._break("PullImage")
        self.asked.append(spec)
        image = self.offers.get((spec.image, spec.handler))
        if image is None:
            raise RuntimeCallError("PullImage", "NOT_FOUND", f"{spec.image}: not found")
        self.images[image.key] = image
        return image.id

    async def remove_image(self, spec: ImageSpec) -> None:
        self._break("RemoveImage")
        key = ImageKey(spec.image, spec.handler)
        if key in self.stuck:
            raise RuntimeCallError("RemoveImage", "UNKNOWN", "device or resource busy")
        self.removed.append(spec)
        self.images.pop(key, None)

    async def image_filesystems(self) -> list[FilesystemUsage]:
        used = sum(image.size for image in self.images.values())
        return [FilesystemUsage("/shelf", used, len(self.images))]

    async def images_in_use(self) -> set[ImageKey]:
        return self.in_use

    def _break(self, call: str) -> None:
        if self.broken == call:
            raise RuntimeCallError(call, "UNKNOWN", "broken on purpose")
