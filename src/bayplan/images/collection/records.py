"""What the collector knows of every image: since when it is here, and when it was last used.

Pure: a list of images, the set of those in use and the time go in, new records come out. A
container that does not say its handler, or says one for which the image is not listed (the default
handler may have a name), keeps every variant of its image's id in use: keeping one variant too many
is harmless, removing the one that runs is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime

from bayplan.images.runtime.objects import Image, ImageKey

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """One image of one handler, as the collector sees it; `last_used` is None until it was."""

    key: ImageKey
    first_detected: datetime
    last_used: datetime | None = None
    size: int = 0
    pinned: bool = False
    in_use: bool = False
    names: tuple[str, ...] = ()

    @property
    def eviction_order(self) -> tuple[datetime, datetime, ImageKey]:
        """Longest unused first, then longest here; the key makes the order total."""
        return self.last_used or _NEVER, self.first_detected, self.key


Records = Mapping[ImageKey, ImageRecord]


def detect(
    known: Records, images: Iterable[Image], used: Set[ImageKey], now: datetime
) -> dict[ImageKey, ImageRecord]:
    """The records as of now: new images added, absent ones dropped, used ones marked."""
    return {
        image.key: _record(known.get(image.key), image, now, used=image.key in used)
        for image in images
    }


def used_by_containers(present: Set[ImageKey], containers: Set[ImageKey]) -> set[ImageKey]:
    """Which of the images that are there containers were made from, as far as they say."""
    vague = {user.id for user in containers if not user.handler or user not in present}
    return {key for key in present if key in containers or key.id in vague}


def _record(known: ImageRecord | None, image: Image, now: datetime, *, used: bool) -> ImageRecord:
    last_used = known.last_used if known else None
    return ImageRecord(
        key=image.key,
        first_detected=known.first_detected if known else now,
        last_used=now if used else last_used,
        size=image.size,
        pinned=image.pinned,
        in_use=used,
        names=image.names,
    )
