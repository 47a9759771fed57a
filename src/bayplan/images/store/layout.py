"""The store's directory layout, its lock, and partial downloads.

    root/
      images.db     the catalogue of images
      blobs/        content by digest, as downloaded from the registry
      chains/       snapshots: complete root filesystems by chain id
      partial/      partial downloads, of running and of failed pulls
      ingest/       other temporary files and files to delete; emptied at every start

Content is written under `partial` or `ingest` and moved into place when it is complete. Before an
image is added to the catalogue, everything is flushed to disk, so after a crash an image of the
catalogue has all of its content, and unused content is deleted.

A blob is received in a file that is named by its digest and repository, and stays there until its
image is in the catalogue. If the pull ends before that, even by a kill, the file stays. The next
pull of that repository reads it again, since it was not flushed, and requests the rest. Partial
downloads are limited by age, size, number and free disk space; the oldest are deleted first.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Self

import msgspec

from bayplan.images.layers.unpack import StoreUsage
from bayplan.kube.imagereferences import Repository


class StoreInUseError(Exception):
    """Another process uses this store."""


class StoreLayout:
    """The paths of a store, locked for this process."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs = root / "blobs"
        self.chains = root / "chains"
        self.partial = root / "partial"
        self.ingest = root / "ingest"
        self.database = root / "images.db"
        self._lock: int | None = None

    def open(self) -> Self:
        """Create the directories and take the lock."""
        for directory in (self.root, self.blobs, self.chains, self.partial, self.ingest):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise StoreInUseError(f"{self.root} is in use by another process") from None
        return self

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def blob(self, digest: str) -> Path:
        """Return the path of a blob."""
        return self.blobs / digest.replace(":", "-")

    def chain(self, chain_id: str) -> Path:
        """Return the path of a snapshot."""
        return self.chains / chain_id.replace(":", "-")

    def scratch(self) -> Path:
        """Return a new temporary path."""
        return self.ingest / uuid.uuid4().hex

    def discard(self, path: Path) -> Path | None:
        """Move a path out of the store at once, to be deleted later; return the new path."""
        trash = self.scratch()
        try:
            path.rename(trash)
        except FileNotFoundError:
            return None
        return trash

    def flush(self) -> None:
        """Flush everything written so far to disk."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _syncfs is None or _syncfs(descriptor) != 0:
                os.sync()
        finally:
            os.close(descriptor)


def delete(path: Path) -> None:
    """Delete a file or a directory tree."""
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(path)
    except PermissionError:
        # Directories of images may forbid their own deletion to all but root.
        for directory, _, _ in os.walk(path):
            Path(directory).chmod(0o700)
        shutil.rmtree(path)


_syncfs = getattr(ctypes.CDLL(None), "syncfs", None)


_BLOCK = 512
_NAME_LENGTH = 32


class PartialDownloadLimits(msgspec.Struct, frozen=True):
    """Limits on age, size and number of partial downloads."""

    seconds: float = 24 * 3600.0
    bytes: int = 16 * 1024**3
    files: int = 1000
    share_of_free: float = 0.25  # of what the disk has free

    def allowed(self, free: int) -> int:
        """Return the bytes that may stay on a disk with so much free space."""
        return min(self.bytes, int(free * self.share_of_free))


class PartialDownloads:
    """The partial downloads of one store."""

    def __init__(
        self, layout: StoreLayout, partial_limits: PartialDownloadLimits, clock: Callable[[], float]
    ) -> None:
        self._layout = layout
        self._limits = partial_limits
        self._clock = clock
        self._active: set[Path] = set()

    def path(self, digest: str, repository: Repository) -> Path:
        """Return the path of a partial download."""
        whose = hashlib.sha256(str(repository).encode()).hexdigest()[:_NAME_LENGTH]
        return self._layout.partial / f"{digest.replace(':', '-')}.{whose}"

    @contextlib.contextmanager
    def receiving(self, digest: str, repository: Repository) -> Iterator[Path]:
        """Keep a file from being deleted while it is written."""
        path = self.path(digest, repository)
        self._active.add(path)
        try:
            yield path
        finally:
            self._active.discard(path)

    def finished(self, digests: Iterable[str], repository: Repository) -> None:
        """Delete the partial downloads of blobs that an image uses now."""
        for digest in digests:
            self.path(digest, repository).unlink(missing_ok=True)

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Delete the partial downloads of unwanted digests."""
        for path in self._files():
            if unwanted(path.name.partition(".")[0].replace("-", ":", 1)):
                path.unlink()

    def trim(self, *, everything: bool = False) -> list[Path]:
        """Take out what is over the limits; return the paths to delete."""
        free = shutil.disk_usage(self._layout.partial).free
        files_left, bytes_left = self._limits.files, 0 if everything else self._limits.allowed(free)
        trash = []
        for path, status in sorted(self._idle(), key=lambda one: one[1].st_mtime, reverse=True):
            files_left, bytes_left = files_left - 1, bytes_left - status.st_blocks * _BLOCK
            is_young = self._clock() - status.st_mtime <= self._limits.seconds
            if (everything or files_left < 0 or bytes_left < 0 or not is_young) and (
                gone := self._layout.discard(path)
            ):
                trash.append(gone)
        return trash

    def usage(self) -> StoreUsage:
        """Return their disk usage, without those that are blobs of the store as well."""
        own = [one for _, one in self._statuses() if one.st_nlink == 1]
        return StoreUsage(sum(one.st_blocks * _BLOCK for one in own), len(own))

    def _idle(self) -> list[tuple[Path, os.stat_result]]:
        return [(path, status) for path, status in self._statuses() if path not in self._active]

    def _statuses(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat()

    def _files(self) -> list[Path]:
        return list(self._layout.partial.iterdir())
