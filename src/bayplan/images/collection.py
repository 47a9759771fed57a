"""Garbage collection of images: which go, by the kubelet's thresholds and ages, and removing them.

Pure: a list of images, the set of those in use and the time go in, new records come out. A
container that does not say its handler, or says one for which the image is not listed (the default
handler may have a name), keeps every variant of its image's id in use: keeping one variant too many
is harmless, removing the one that runs is not.

In use and pinned ones never go; young ones do not go for space. Of the others, the longest unused
goes first. Each is one (image, handler), so that removing one variant leaves every other.

Every removal names its handler, so that one variant goes and the others stay. A removal that fails
does not stop the round: the next candidate is taken instead, and the image is tried again in the
next round, which comes sooner than usual.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from bayplan.base.clock import Clock
from bayplan.images.runtime.objects import (
    FilesystemUsage,
    Image,
    ImageKey,
    ImageRuntime,
    ImageSpec,
    RuntimeCallError,
)


@dataclass(frozen=True, slots=True)
class CollectionPolicy:
    """Above `high_percent` of the disk images are removed until `low_percent` is reached."""

    high_percent: int = 85
    low_percent: int = 80
    minimum_age: timedelta = timedelta(minutes=2)
    maximum_age: timedelta = timedelta(0)
    """Images unused for longer go whatever the disk says; 0 switches this off."""

    def __post_init__(self) -> None:
        for name, value in (("high", self.high_percent), ("low", self.low_percent)):
            if not 0 <= value <= 100:
                raise ValueError(f"{name} threshold {value} is not between 0 and 100 percent")
        if self.low_percent > self.high_percent:
            raise ValueError(
                f"low threshold {self.low_percent} is above the high one, {self.high_percent}"
            )
        if min(self.minimum_age, self.maximum_age) < timedelta(0):
            raise ValueError("an image's minimum and maximum ages must not be negative")


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The filesystem that holds the images."""

    capacity: int
    available: int

    @property
    def used_percent(self) -> int:
        """How full it is, rounded up to whole percents as the kubelet does."""
        return 100 - min(self.available, self.capacity) * 100 // self.capacity

    def bytes_to_free(self, policy: CollectionPolicy) -> int:
        """How much has to go to be at the low threshold; 0 below the high one."""
        if self.used_percent < policy.high_percent:
            return 0
        wanted = self.capacity * (100 - policy.low_percent) // 100
        return max(0, wanted - min(self.available, self.capacity))


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


class Reason(StrEnum):
    """Why an image goes."""

    AGE = "age"
    SPACE = "space"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An image that may go, and why."""

    record: ImageRecord
    reason: Reason


def removable(records: Iterable[ImageRecord]) -> list[ImageRecord]:
    """The images that nobody needs, in the order in which they go."""
    free = [record for record in records if not record.in_use and not record.pinned]
    return sorted(free, key=lambda record: record.eviction_order)


def too_old(
    records: Iterable[ImageRecord], policy: CollectionPolicy, now: datetime, started: datetime
) -> list[Candidate]:
    """The images unused for longer than the maximum age.

    An agent that has only just started does not know when images were last used, so it waits for
    the maximum age itself before it judges. An image that was never used is as old as its stay.
    """
    if not policy.maximum_age or now - started <= policy.maximum_age:
        return []
    return [
        Candidate(record, Reason.AGE)
        for record in removable(records)
        if now - (record.last_used or record.first_detected) > policy.maximum_age
    ]


def for_space(
    records: Iterable[ImageRecord], policy: CollectionPolicy, now: datetime
) -> list[Candidate]:
    """The images that may go to make room, in order; take from the front until there is enough."""
    return [
        Candidate(record, Reason.SPACE)
        for record in removable(records)
        if now - record.first_detected >= policy.minimum_age
    ]


DiskProbe = Callable[[str], DiskUsage]
"""Gives the usage of the filesystem that holds a path."""


class InvalidDiskCapacityError(Exception):
    """The disk's size is not known, so that nothing can be decided."""


def probe_disk(path: str) -> DiskUsage:
    """Ask the machine about the filesystem that holds a path."""
    try:
        stats = os.statvfs(path)
    except OSError as error:
        raise InvalidDiskCapacityError(f"image filesystem {path!r}: {error.strerror}") from error
    return DiskUsage(stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize)


def image_disk(filesystems: Sequence[FilesystemUsage], probe: DiskProbe) -> DiskUsage:
    """The usage of the first image filesystem, which is the one that the kubelet looks at."""
    if not filesystems:
        raise InvalidDiskCapacityError("the runtime names no image filesystem")
    usage = probe(filesystems[0].mountpoint)
    if usage.capacity <= 0:
        raise InvalidDiskCapacityError("invalid capacity 0 on image filesystem")
    return usage


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
