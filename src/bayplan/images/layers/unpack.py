"""Unpacking a verified blob into a snapshot that shares the files of its parent.

A snapshot's directory is complete and never changed, so its files can be hard-linked. Unpacking on
top replaces files, never writes into them. Its disk usage is counted without the shared files, so
that the sum over all snapshots is the usage of the disk.
"""

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from bayplan.images.layers.apply import LayerApplier
from bayplan.images.layers.streams import LayerStream, UnpackLimits
from bayplan.images.registry.errors import IntegrityError, PullError, storage_error

_BLOCK = 512


class StoreUsage(NamedTuple):
    """Disk usage in bytes and inodes."""

    bytes: int = 0
    inodes: int = 0

    def __add__(self, other: object) -> "StoreUsage":
        if not isinstance(other, StoreUsage):
            return NotImplemented
        return StoreUsage(self.bytes + other.bytes, self.inodes + other.inodes)

    def __sub__(self, other: "StoreUsage") -> "StoreUsage":
        return StoreUsage(self.bytes - other.bytes, self.inodes - other.inodes)


def clone(source: str, target: str) -> set[int]:
    """Copy a tree by hard links; return the shared inodes."""
    shared: set[int] = set()
    made: list[tuple[str, str]] = []
    for directory, entries in _directories(source):
        copy = os.path.join(target, os.path.relpath(directory, source))
        for entry in entries:
            path = os.path.join(copy, entry.name)
            if entry.is_dir(follow_symlinks=False):
                os.mkdir(path, 0o700)
            elif _link(entry.path, path):
                shared.add(entry.inode())
        made.append((directory, copy))
    for directory, copy in reversed(made):
        _copy_metadata(directory, copy)
    return shared


def measure(root: str, shared: set[int]) -> StoreUsage:
    """Return the disk usage of a tree without its shared files."""
    seen: set[int] = set(shared)
    total = _occupied(os.lstat(root))
    for _, entries in _directories(root):
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if status.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                if status.st_ino in seen:
                    continue
                seen.add(status.st_ino)
            total += _occupied(status)
    return total


def _occupied(status: os.stat_result) -> StoreUsage:
    return StoreUsage(status.st_blocks * _BLOCK, 1)


def _directories(root: str) -> Iterator[tuple[str, list["os.DirEntry[str]"]]]:
    """Walk every directory, parents first."""
    todo = [root]
    while todo:
        directory = todo.pop()
        with os.scandir(directory) as scan:
            entries = list(scan)
        yield directory, entries
        todo += [entry.path for entry in entries if entry.is_dir(follow_symlinks=False)]


def _link(source: str, target: str) -> bool:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in {errno.EMLINK, errno.EPERM}:
            raise
        # The file has the maximum number of links, or links are not permitted.
        shutil.copy2(source, target, follow_symlinks=False)
        return False
    return True


def _copy_metadata(source: str, target: str) -> None:
    status = os.lstat(source)
    if os.geteuid() == 0:
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, status.st_mode & 0o7777)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


_HOSTILE = frozenset((errno.ENAMETOOLONG, errno.EINVAL, errno.ELOOP, errno.ENOTDIR))


class LayerJob(msgspec.Struct, frozen=True):
    """A layer to unpack."""

    blob: Path
    diff_id: str
    parent: Path | None  # the parent snapshot
    target: Path  # an empty directory to fill
    limits: UnpackLimits = UnpackLimits()


def unpack(job: LayerJob, stop: threading.Event) -> StoreUsage:
    """Fill the target with the parent's tree and the layer; return its disk usage."""
    try:
        shared = clone(str(job.parent), str(job.target)) if job.parent else set()
        with job.blob.open("rb") as file:
            allowed = job.limits.expanded(job.blob.stat().st_size)
            stream = LayerStream(file, allowed, stop)
            LayerApplier(str(job.target), job.limits).apply(stream)
            check_content(stream.digest(), job.diff_id)
        return measure(str(job.target), shared)
    except InterruptedError:
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise _kind(error)(f"layer {job.diff_id} cannot be unpacked: {reason}") from error


def content_digest(blob: Path, limits: UnpackLimits, stop: threading.Event) -> str:
    """Return the diff id of a layer's blob, without unpacking it."""
    with blob.open("rb") as file:
        allowed = limits.expanded(blob.stat().st_size)
        return LayerStream(file, allowed, stop).digest()


def check_content(actual: str, diff_id: str) -> None:
    """Raise IntegrityError unless a layer has the diff id of its image's config."""
    if actual != diff_id:
        raise IntegrityError(f"a layer has the diff id {actual}, its image's config {diff_id}")


def _kind(error: OSError) -> type[PullError]:
    return IntegrityError if error.errno in _HOSTILE else storage_error(error)
