"""`node.status.images`: what a node has, told to the API server, so that ImageLocality can read it.

As the kubelet tells it: the largest images first, at most fifty of them, at most five names each.
An image has an entry for each handler that it was pulled for. Whoever reads takes a name for one
image of a node, so each plain name is told once: in the default handler's entry, else in the one of
the smallest variant, which promises least. Other handlers' names are told as `name,handler`.

The list is looked at every ten seconds and told when it has changed, and every five minutes if the
server has another one. Nothing but the list is written.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bayplan.base.clock import Clock
from bayplan.base.pacing import Backoff
from bayplan.client.errors import ClientError
from bayplan.images.runtime.objects import Image, ImageKey, ImageRuntime, RuntimeCallError
from bayplan.kube.nodes import ContainerImage

log = logging.getLogger(__name__)

PERIOD = 10.0
REPORT_PERIOD = 300.0
MOST_IMAGES = 50
MOST_NAMES = 5
NO_LIMIT = -1


def told_images(images: Sequence[Image], limit: int = MOST_IMAGES) -> list[ContainerImage]:
    """What a node's status says of its images; an image without a name is left out."""
    named = sorted(
        (image for image in images if image.names),
        key=lambda image: (-image.size, image.id, image.handler),
    )
    chosen = named if limit == NO_LIMIT else named[:limit]
    owners = _owners(chosen)
    return [
        ContainerImage(names=_names(image, owners)[:MOST_NAMES], size_bytes=image.size)
        for image in chosen
    ]


def _owners(images: Sequence[Image]) -> dict[str, ImageKey]:
    """Whose each plain name is: the default handler's, else the smallest variant's."""
    owners: dict[str, ImageKey] = {}
    for image in sorted(images, key=lambda one: (bool(one.handler), one.size, one.handler)):
        for name in image.names:
            owners.setdefault(name, image.key)
    return owners


def _names(image: Image, owners: dict[str, ImageKey]) -> list[str]:
    """Tags before digests, since those are what pods write."""
    names = [*sorted(image.tags), *sorted(image.digests)]
    plain = [name for name in names if owners[name] == image.key]
    return plain + ([f"{name},{image.handler}" for name in names] if image.handler else [])


class NodeStatus(Protocol):
    """The node's status on the API server; either call may raise ClientError."""

    async def images(self) -> list[ContainerImage]:
        """What it says now."""
        ...

    async def tell(self, images: Sequence[ContainerImage]) -> None:
        """Have it say something else."""
        ...


@dataclass(slots=True)
class ImageTeller:
    """Keeps a node's status true."""

    runtime: ImageRuntime
    status: NodeStatus
    clock: Clock
    backoff: Backoff
    limit: int = MOST_IMAGES
    _told: list[ContainerImage] | None = None
    _told_at: float = field(default=0.0)

    async def run(self) -> None:
        """Rounds without end."""
        while True:
            told = await self.round()
            if told:
                self.backoff.reset()
            await self.clock.sleep(PERIOD if told else self.backoff.next_wait())

    async def round(self) -> bool:
        """One look; returns whether the server knows what there is to know."""
        try:
            await self._look()
        except RuntimeCallError as error:
            # What was told stays: that nobody answers does not take images away.
            log.info("the images cannot be listed for the node's status: %s", error)
        except ClientError as error:
            log.warning("the node's images cannot be published: %s", error)
            return False
        return True

    async def _look(self) -> None:
        wanted = told_images(await self.runtime.list_images(), self.limit)
        now = self.clock.monotonic()
        if wanted == self._told and now - self._told_at < REPORT_PERIOD:
            return
        if wanted == self._told or self._told is None:
            # Nothing has changed here, but it may have there.
            if await self.status.images() != wanted:
                await self.status.tell(wanted)
        else:
            await self.status.tell(wanted)
        self._told, self._told_at = wanted, now
