"""What the collector knows of every image: since when it is here, and when it was last used.

Pure: a list of images, the set of those in use and the time go in, new records come out. A
container that does not say its handler keeps every variant of its image's id in use: keeping one
variant too many is harmless, removing the one that runs is not.
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
    known: Records, images: Iterable[Image], in_use: Set[ImageKey], now: datetime
) -> dict[ImageKey, ImageRecord]:
    """The records as of now: new images added, absent ones dropped, used ones marked."""
    return {image.key: _record(known.get(image.key), image, in_use, now) for image in images}


def is_used(key: ImageKey, in_use: Set[ImageKey]) -> bool:
    """Whether the image is used by name of its handler, or by someone who says no handler."""
    return key in in_use or ImageKey(key.id) in in_use


def _record(
    known: ImageRecord | None, image: Image, in_use: Set[ImageKey], now: datetime
) -> ImageRecord:
    used = is_used(image.key, in_use)
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
