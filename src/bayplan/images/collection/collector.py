"""The collector: looks at the images, decides, removes, and remembers what is left.

Every removal names its handler, so that one variant goes and the others stay. A removal that fails
does not stop the round: the next candidate is taken instead, and the image is tried again in the
next round, which comes sooner than usual.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Set
from dataclasses import dataclass, field
from datetime import datetime

from bayplan.base.clock import Clock
from bayplan.images.collection.decision import Candidate, Reason, for_space, removable, too_old
from bayplan.images.collection.filesystem import DiskProbe, image_disk
from bayplan.images.collection.policy import CollectionPolicy, DiskUsage
from bayplan.images.collection.records import ImageRecord, detect, used_by_containers
from bayplan.images.runtime.errors import RuntimeCallError
from bayplan.images.runtime.objects import Image, ImageKey, ImageRuntime, ImageSpec

log = logging.getLogger(__name__)

UsedElsewhere = Callable[[], Awaitable[Set[ImageKey]]]
"""Images in use by those who have no container yet, such as pods that are being started; each by
the key under which the runtime lists it."""


async def used_by_nobody_else() -> Set[ImageKey]:
    """The images in use that the runtime does not know of: none."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a round did, or in a dry run would do."""

    removed: tuple[Candidate, ...]
    failed: dict[ImageKey, str]
    kept: tuple[ImageRecord, ...]
    disk: DiskUsage | None = None
    bytes_wanted: int = 0
    """How much had to go to make room."""

    @property
    def bytes_freed(self) -> int:
        """How much went, for whatever reason."""
        return sum(candidate.record.size for candidate in self.removed)

    @property
    def fell_short(self) -> bool:
        """Whether the disk needed more room than could be made."""
        return _bytes_for(Reason.SPACE, self.removed) < self.bytes_wanted


@dataclass(slots=True)
class Collector:
    """Keeps the records of one node's images between rounds."""

    runtime: ImageRuntime
    clock: Clock
    policy: CollectionPolicy
    probe: DiskProbe
    used_elsewhere: UsedElsewhere = used_by_nobody_else
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held over "does anybody use it? then remove it"; who claims an image holds it as well."""
    images: list[Image] = field(default_factory=list)
    """The images as of the last look."""
    _records: dict[ImageKey, ImageRecord] = field(default_factory=dict)
    _started: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.now()

    async def look(self) -> None:
        """Bring the records up to date."""
        self.images = await self.runtime.list_images()
        present = {image.key for image in self.images}
        used = used_by_containers(present, await self.runtime.images_in_use())
        used |= await self.used_elsewhere()
        self._records = detect(self._records, self.images, used, self.clock.now())

    async def collect(self, *, dry_run: bool = False) -> Outcome:
        """One round: the too old go first, then as many as the disk needs."""
        await self.look()
        now = self.clock.now()
        work = self._round(dry_run=dry_run)
        for candidate in too_old(work.records.values(), self.policy, now, self._started):
            await work.remove(candidate)
        disk = image_disk(await self.runtime.image_filesystems(), self.probe)
        # In a dry run the disk does not know what would have gone already.
        gone = _bytes_for(Reason.AGE, work.removed) if dry_run else 0
        wanted = max(0, disk.bytes_to_free(self.policy) - gone)
        for candidate in for_space(work.records.values(), self.policy, now):
            if _bytes_for(Reason.SPACE, work.removed) >= wanted:
                break
            await work.remove(candidate)
        return self._close(work, disk, wanted)

    async def remove_unused(self, *, dry_run: bool = False) -> Outcome:
        """Remove whatever nobody needs, young or old, whatever the disk says."""
        await self.look()
        work = self._round(dry_run=dry_run)
        for record in removable(work.records.values()):
            await work.remove(Candidate(record, Reason.SPACE))
        return self._close(work)

    def _round(self, *, dry_run: bool) -> _Round:
        users = self.used_elsewhere
        return _Round(self.runtime, users, self.lock, dict(self._records), dry_run)

    def _close(self, work: _Round, disk: DiskUsage | None = None, wanted: int = 0) -> Outcome:
        if not work.dry_run:
            self._records = work.records
        kept = tuple(work.records.values())
        return Outcome(tuple(work.removed), work.failed, kept, disk, wanted)


@dataclass(slots=True)
class _Round:
    """The removals of one round, on a copy of the records."""

    runtime: ImageRuntime
    used_elsewhere: UsedElsewhere
    lock: asyncio.Lock
    records: dict[ImageKey, ImageRecord]
    dry_run: bool
    removed: list[Candidate] = field(default_factory=list)
    failed: dict[ImageKey, str] = field(default_factory=dict)

    async def remove(self, candidate: Candidate) -> None:
        key = candidate.record.key
        async with self.lock:
            # A pod may have come to need the image since the look.
            if key in await self.used_elsewhere():
                return
            try:
                if not self.dry_run:
                    await self.runtime.remove_image(ImageSpec(key.id, key.handler))
            except RuntimeCallError as error:
                log.warning("cannot remove image %s: %s", key, error)
                self.failed[key] = str(error)
                return
        self.removed.append(candidate)
        del self.records[key]


def _bytes_for(reason: Reason, removed: Iterable[Candidate]) -> int:
    return sum(candidate.record.size for candidate in removed if candidate.reason is reason)
