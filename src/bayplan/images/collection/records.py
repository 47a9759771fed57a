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
    known: Records, images: Iterable[Image], in_use: Set[ImageKey], now: datetime
) -> dict[ImageKey, ImageRecord]:
    """The records as of now: new images added, absent ones dropped, used ones marked."""
    present = {image.key: image for image in images}
    used = used_of(present.keys(), in_use)
    return {
        key: _record(known.get(key), image, now, used=key in used) for key, image in present.items()
    }


def used_of(present: Set[ImageKey], in_use: Set[ImageKey]) -> set[ImageKey]:
    """Which of the images that are there somebody uses."""
    vague = {user.id for user in in_use if not user.handler or user not in present}
    return {key for key in present if key in in_use or key.id in vague}


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
