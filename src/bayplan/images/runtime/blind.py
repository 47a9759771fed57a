"""A runtime seen with the gate `RuntimeClassInImageCriApi` off: no handler goes out, none comes in.

Images are then known by name alone, as before the feature. Entries that differ only in their
handler look like one image; this is why turning the gate off (or on again) owes a clean-up, see
`bayplan.images.agent.rollback`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bayplan.images.runtime.objects import (
    FilesystemUsage,
    Image,
    ImageKey,
    ImageRuntime,
    ImageSpec,
    PodIdentity,
    RegistryAuth,
)


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
