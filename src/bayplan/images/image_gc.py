"""Garbage collection of images by the kubelet's thresholds and ages.

Records are a pure function of the images, the set of those in use and the time. A container without
a handler, or with one for which the image is not listed (the default handler may have a name),
keeps every variant of its image's id in use: keeping one variant too many is harmless, removing one
in use is not.

Images that are in use or pinned are never removed, and those younger than the minimum age not for
space. Of the others, the least recently used is removed first. A record is one (image, handler):
every removal names its handler, so that the other variants stay. A removal that fails does not stop
the run: the next candidate is removed instead, and the image is tried again in the next run.
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
class ImageGCPolicy:
    """Above `high_percent` of the disk, images are removed until `low_percent` is reached."""

    high_percent: int = 85
    low_percent: int = 80
    minimum_age: timedelta = timedelta(minutes=2)
    maximum_age: timedelta = timedelta(0)
    """Images unused for longer are removed even with free disk space; 0 switches this off."""

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
        """The used percentage, rounded up as in the kubelet."""
        return 100 - min(self.available, self.capacity) * 100 // self.capacity

    def bytes_to_free(self, policy: ImageGCPolicy) -> int:
        """Return the bytes to free to reach the low threshold; 0 below the high one."""
        if self.used_percent < policy.high_percent:
            return 0
        wanted = self.capacity * (100 - policy.low_percent) // 100
        return max(0, wanted - min(self.available, self.capacity))


_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ImageRecord:
    """An image of one handler; `last_used` is None if it was never in use."""

    key: ImageKey
    first_detected: datetime
    last_used: datetime | None = None
    size: int = 0
    pinned: bool = False
    in_use: bool = False
    names: tuple[str, ...] = ()

    @property
    def eviction_order(self) -> tuple[datetime, datetime, ImageKey]:
        """Least recently used first, then first detected; the key makes the order total."""
        return self.last_used or _NEVER, self.first_detected, self.key


Records = Mapping[ImageKey, ImageRecord]


def detect(
    known: Records, images: Iterable[Image], used: Set[ImageKey], now: datetime
) -> dict[ImageKey, ImageRecord]:
    """Return the records as of now: new images added, absent ones dropped, used ones marked."""
    return {
        image.key: _record(known.get(image.key), image, now, used=image.key in used)
        for image in images
    }


def used_by_containers(present: Set[ImageKey], containers: Set[ImageKey]) -> set[ImageKey]:
    """Return the present images that containers use, or may use."""
    uncertain = {user.id for user in containers if not user.handler or user not in present}
    return {key for key in present if key in containers or key.id in uncertain}


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


class GCReason(StrEnum):
    """Why an image is removed."""

    AGE = "age"
    SPACE = "space"


@dataclass(frozen=True, slots=True)
class GCCandidate:
    """An image that may be removed, and why."""

    record: ImageRecord
    reason: GCReason


def removable(records: Iterable[ImageRecord]) -> list[ImageRecord]:
    """Return the images that are neither in use nor pinned, in the order of removal."""
    free = [record for record in records if not record.in_use and not record.pinned]
    return sorted(free, key=lambda record: record.eviction_order)


def too_old(
    records: Iterable[ImageRecord], policy: ImageGCPolicy, now: datetime, started: datetime
) -> list[GCCandidate]:
    """Return the images unused for longer than the maximum age.

    An agent that has just started does not know when images were last used, so it first waits for
    the maximum age. An image that was never used has the age since it was detected.
    """
    if not policy.maximum_age or now - started <= policy.maximum_age:
        return []
    return [
        GCCandidate(record, GCReason.AGE)
        for record in removable(records)
        if now - (record.last_used or record.first_detected) > policy.maximum_age
    ]


def for_space(
    records: Iterable[ImageRecord], policy: ImageGCPolicy, now: datetime
) -> list[GCCandidate]:
    """Return the images that may be removed to free space, in order."""
    return [
        GCCandidate(record, GCReason.SPACE)
        for record in removable(records)
        if now - record.first_detected >= policy.minimum_age
    ]


DiskProbe = Callable[[str], DiskUsage]
"""Returns the usage of the filesystem of a path."""


class InvalidDiskCapacityError(Exception):
    """The disk's capacity is unknown, so that nothing can be decided."""


def probe_disk(path: str) -> DiskUsage:
    """Return the usage of the filesystem of a path."""
    try:
        stats = os.statvfs(path)
    except OSError as error:
        raise InvalidDiskCapacityError(f"image filesystem {path!r}: {error.strerror}") from error
    return DiskUsage(stats.f_blocks * stats.f_frsize, stats.f_bavail * stats.f_frsize)


def image_disk(filesystems: Sequence[FilesystemUsage], probe: DiskProbe) -> DiskUsage:
    """Return the usage of the first image filesystem, as the kubelet does."""
    if not filesystems:
        raise InvalidDiskCapacityError("the runtime reports no image filesystem")
    usage = probe(filesystems[0].mountpoint)
    if usage.capacity <= 0:
        raise InvalidDiskCapacityError("invalid capacity 0 on image filesystem")
    return usage


log = logging.getLogger(__name__)

InUseByPods = Callable[[], Awaitable[Set[ImageKey]]]
"""Returns the images of pods that may have no container yet, by the key in the runtime's list."""


async def not_in_use_by_pods() -> Set[ImageKey]:
    """Return no images: only containers count."""
    return frozenset()


@dataclass(frozen=True, slots=True)
class ImageGCResult:
    """What a run did, or in a dry run would do."""

    removed: tuple[GCCandidate, ...]
    failed: dict[ImageKey, str]
    kept: tuple[ImageRecord, ...]
    disk: DiskUsage | None = None
    bytes_wanted: int = 0
    """The bytes that had to be freed."""

    @property
    def bytes_freed(self) -> int:
        """The bytes of all removed images."""
        return sum(candidate.record.size for candidate in self.removed)

    @property
    def is_short_of_space(self) -> bool:
        """Whether less was freed than needed."""
        return _bytes_for(GCReason.SPACE, self.removed) < self.bytes_wanted


@dataclass(slots=True)
class ImageGCManager:
    """Collects one node's images, and keeps their records between runs."""

    runtime: ImageRuntime
    clock: Clock
    policy: ImageGCPolicy
    probe: DiskProbe
    in_use_by_pods: InUseByPods = not_in_use_by_pods
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held while an image is checked and removed, and while a pod begins to use one."""
    images: list[Image] = field(default_factory=list)
    """The images as of the last refresh."""
    _records: dict[ImageKey, ImageRecord] = field(default_factory=dict)
    _started: datetime = field(init=False)

    def __post_init__(self) -> None:
        self._started = self.clock.now()

    async def refresh(self) -> None:
        """Bring the records up to date."""
        self.images = await self.runtime.list_images()
        present = {image.key for image in self.images}
        used = used_by_containers(present, await self.runtime.images_in_use())
        used |= await self.in_use_by_pods()
        self._records = detect(self._records, self.images, used, self.clock.now())

    async def collect(self, *, dry_run: bool = False) -> ImageGCResult:
        """Remove images that are too old, then as many as the disk needs."""
        await self.refresh()
        now = self.clock.now()
        work = self._round(dry_run=dry_run)
        for candidate in too_old(work.records.values(), self.policy, now, self._started):
            await work.remove(candidate)
        disk = image_disk(await self.runtime.image_filesystems(), self.probe)
        # In a dry run the disk does not show what would have been removed already.
        freed = _bytes_for(GCReason.AGE, work.removed) if dry_run else 0
        wanted = max(0, disk.bytes_to_free(self.policy) - freed)
        for candidate in for_space(work.records.values(), self.policy, now):
            if _bytes_for(GCReason.SPACE, work.removed) >= wanted:
                break
            await work.remove(candidate)
        return self._close(work, disk, wanted)

    async def remove_unused(self, *, dry_run: bool = False) -> ImageGCResult:
        """Remove all images that are neither in use nor pinned, whatever their age."""
        await self.refresh()
        work = self._round(dry_run=dry_run)
        for record in removable(work.records.values()):
            await work.remove(GCCandidate(record, GCReason.SPACE))
        return self._close(work)

    def _round(self, *, dry_run: bool) -> _GCRun:
        users = self.in_use_by_pods
        return _GCRun(self.runtime, users, self.lock, dict(self._records), dry_run)

    def _close(self, work: _GCRun, disk: DiskUsage | None = None, wanted: int = 0) -> ImageGCResult:
        if not work.dry_run:
            self._records = work.records
        kept = tuple(work.records.values())
        return ImageGCResult(tuple(work.removed), work.failed, kept, disk, wanted)


@dataclass(slots=True)
class _GCRun:
    """The removals of one run, on a copy of the records."""

    runtime: ImageRuntime
    in_use_by_pods: InUseByPods
    lock: asyncio.Lock
    records: dict[ImageKey, ImageRecord]
    dry_run: bool
    removed: list[GCCandidate] = field(default_factory=list)
    failed: dict[ImageKey, str] = field(default_factory=dict)

    async def remove(self, candidate: GCCandidate) -> None:
        key = candidate.record.key
        async with self.lock:
            # A pod may have begun to use the image since the refresh.
            if key in await self.in_use_by_pods():
                return
            try:
                if not self.dry_run:
                    await self.runtime.remove_image(ImageSpec(key.id, key.handler))
            except RuntimeCallError as error:
                log.warning("cannot remove image: %s", error, extra={"image": str(key)})
                self.failed[key] = str(error)
                return
        self.removed.append(candidate)
        del self.records[key]


def _bytes_for(reason: GCReason, removed: Iterable[GCCandidate]) -> int:
    return sum(candidate.record.size for candidate in removed if candidate.reason is reason)
