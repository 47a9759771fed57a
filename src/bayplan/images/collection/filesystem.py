"""How full the disk is that holds the images: the runtime says where, the machine says how much."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from bayplan.images.collection.policy import DiskUsage
from bayplan.images.runtime.objects import FilesystemUsage

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
