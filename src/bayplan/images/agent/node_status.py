"""`node.status.images`: the images of a node, which the ImageLocality plugin reads.

As in the kubelet: the largest images first, at most fifty of them, at most five names each. An
image has an entry for each handler that it was pulled for. Readers take a name for one image of a
node, so each plain name is listed once: in the default handler's entry, else in that of the
smallest variant. Other handlers' names are listed as `name,handler`.

The list is computed every ten seconds and written when it has changed, or every five minutes if the
server has another one. No other field is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.base.clock import Clock
from bayplan.base.flowcontrol import ExponentialBackoff
from bayplan.client.errors import ClientError
from bayplan.images.runtime.objects import Image, ImageKey, ImageRuntime, RuntimeCallError
from bayplan.kube.nodes import ContainerImage

log = logging.getLogger(__name__)

PERIOD = 10.0
REPORT_PERIOD = 300.0
MAX_IMAGES = 50
MAX_NAMES = 5
NO_LIMIT = -1


def status_images(images: Sequence[Image], limit: int = MAX_IMAGES) -> list[ContainerImage]:
    """Return the images for a node's status; an image without a name is left out."""
    named = sorted(
        (image for image in images if image.names),
        key=lambda image: (-image.size, image.id, image.handler),
    )
    chosen = named if limit == NO_LIMIT else named[:limit]
    owners = _owners(chosen)
    return [
        ContainerImage(names=_names(image, owners)[:MAX_NAMES], size_bytes=image.size)
        for image in chosen
    ]


def _owners(images: Sequence[Image]) -> dict[str, ImageKey]:
    """Return the owner of each plain name: the default handler's image, else the smallest."""
    owners: dict[str, ImageKey] = {}
    for image in sorted(images, key=lambda one: (bool(one.handler), one.size, one.handler)):
        for name in image.names:
            owners.setdefault(name, image.key)
    return owners


def _names(image: Image, owners: dict[str, ImageKey]) -> list[str]:
    """Return an image's names: tags before digests, since pods mostly use tags."""
    names = [*sorted(image.tags), *sorted(image.digests)]
    plain = [name for name in names if owners[name] == image.key]
    return plain + ([f"{name},{image.handler}" for name in names] if image.handler else [])


class NodeStatusImages(Protocol):
    """Reads and writes a node's `status.images`; both methods may raise ClientError."""

    async def images(self) -> list[ContainerImage]:
        """Return the present list."""
        ...

    async def update(self, images: Sequence[ContainerImage]) -> None:
        """Replace the list."""
        ...


@dataclass(slots=True)
class NodeImagesReporter:
    """Keeps a node's `status.images` up to date."""

    runtime: ImageRuntime
    status: NodeStatusImages
    clock: Clock
    backoff: ExponentialBackoff
    limit: int = MAX_IMAGES
    _reported: list[ContainerImage] | None = None
    _reported_at: float = field(default=0.0)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            reported = await self.round()
            if reported:
                self.backoff.reset()
            await self.clock.sleep(PERIOD if reported else self.backoff.next_wait())

    async def round(self) -> bool:
        """Update the list once; return whether the server has it."""
        try:
            await self._report()
        except RuntimeCallError as error:
            # The list stays: a runtime that does not respond has not removed its images.
            log.info("cannot list images for the node's status: %s", error)
        except ClientError as error:
            log.warning("cannot update images in the node's status: %s", error)
            return False
        return True

    async def _report(self) -> None:
        wanted = status_images(await self.runtime.list_images(), self.limit)
        now = self.clock.monotonic()
        if wanted == self._reported and now - self._reported_at < REPORT_PERIOD:
            return
        if wanted == self._reported or self._reported is None:
            # Nothing has changed here, but the server's list may have.
            if await self.status.images() != wanted:
                await self.status.update(wanted)
        else:
            await self.status.update(wanted)
        self._reported, self._reported_at = wanted, now
