"""The store's directory: what lies where, who may touch it, and downloads to be continued.

    root/
      images.db     the catalogue; what it does not name does not exist
      blobs/        content by digest, as it came from the registry
      chains/       complete root file systems by chain id
      partial/      downloads under way, and those that a failed pull left to be continued
      ingest/       other work under way, and rubbish; emptied at every start

Content is written under `partial` or `ingest` and moved into place when it is whole. Before the
catalogue names it, one barrier makes everything durable, so after a crash at any moment an entry of
the catalogue has all of its content, and anything else is swept away.

A blob is received in a file of its own, named by its digest and the repository it comes from, and
stays there until its image is in the catalogue. Whatever ends the pull before that, the process
killed included, leaves what had come. The next pull of that repository reads it again, since it was
never made durable, and asks for the rest. Nothing here is an image's, so it is bounded: by age, by
size, by number and by the room that is left on the disk; the oldest go first.
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

from bayplan.images.layers.unpack import Usage
from bayplan.kube.imagereferences import Repository


class StoreInUseError(Exception):
    """Another process works on this store."""


class Layout:
    """Paths of one store, opened for this process alone."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.blobs = root / "blobs"
        self.chains = root / "chains"
        self.partial = root / "partial"
        self.ingest = root / "ingest"
        self.database = root / "images.db"
        self._lock: int | None = None

    def open(self) -> Self:
        """Make the directories and take the lock."""
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
        """Give the lock back."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def blob(self, digest: str) -> Path:
        """Say where content lies."""
        return self.blobs / digest.replace(":", "-")

    def chain(self, chain_id: str) -> Path:
        """Say where an unpacked chain lies."""
        return self.chains / chain_id.replace(":", "-")

    def scratch(self) -> Path:
        """Name a fresh place for work under way."""
        return self.ingest / uuid.uuid4().hex

    def discard(self, path: Path) -> Path | None:
        """Take something out of the store at once; deleting it can take its time."""
        rubbish = self.scratch()
        try:
            path.rename(rubbish)
        except FileNotFoundError:
            return None
        return rubbish

    def flush(self) -> None:
        """Return when everything written so far would survive a loss of power."""
        descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _syncfs is None or _syncfs(descriptor) != 0:
                os.sync()
        finally:
            os.close(descriptor)


def delete(path: Path) -> None:
    """Delete a file or a whole tree."""
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


class Keeping(msgspec.Struct, frozen=True):
    """How much of what is no image may stay, and how long."""

    seconds: float = 24 * 3600.0
    bytes: int = 16 * 1024**3
    files: int = 1000
    share_of_free: float = 0.25  # of what the disk has free

    def allowed(self, free: int) -> int:
        """Say how many bytes may stay on a disk with so much free."""
        return min(self.bytes, int(free * self.share_of_free))


class Partials:
    """The unfinished downloads of one store."""

    def __init__(self, layout: Layout, keeping: Keeping, clock: Callable[[], float]) -> None:
        self._layout = layout
        self._keeping = keeping
        self._clock = clock
        self._active: set[Path] = set()

    def path(self, digest: str, repository: Repository) -> Path:
        """Say where a repository's blob is received."""
        whose = hashlib.sha256(str(repository).encode()).hexdigest()[:_NAME_LENGTH]
        return self._layout.partial / f"{digest.replace(':', '-')}.{whose}"

    @contextlib.contextmanager
    def receiving(self, digest: str, repository: Repository) -> Iterator[Path]:
        """Keep a file from being cleared away while it is written."""
        path = self.path(digest, repository)
        self._active.add(path)
        try:
            yield path
        finally:
            self._active.discard(path)

    def finished(self, digests: Iterable[str], repository: Repository) -> None:
        """Drop the names of downloads that are an image's now."""
        for digest in digests:
            self.path(digest, repository).unlink(missing_ok=True)

    def drop(self, unwanted: Callable[[str], bool]) -> None:
        """Drop the downloads of digests that nobody has to continue."""
        for path in self._files():
            if unwanted(path.name.partition(".")[0].replace("-", ":", 1)):
                path.unlink()

    def trim(self, *, everything: bool = False) -> list[Path]:
        """Take out what is too old or too much; give back what is left to delete."""
        free = shutil.disk_usage(self._layout.partial).free
        left, room = self._keeping.files, 0 if everything else self._keeping.allowed(free)
        rubbish = []
        for path, status in sorted(self._idle(), key=lambda one: one[1].st_mtime, reverse=True):
            left, room = left - 1, room - status.st_blocks * _BLOCK
            young = self._clock() - status.st_mtime <= self._keeping.seconds
            if (everything or left < 0 or room < 0 or not young) and (
                gone := self._layout.discard(path)
            ):
                rubbish.append(gone)
        return rubbish

    def usage(self) -> Usage:
        """Count what they occupy, besides those that are blobs of the store as well."""
        own = [one for _, one in self._statuses() if one.st_nlink == 1]
        return Usage(sum(one.st_blocks * _BLOCK for one in own), len(own))

    def _idle(self) -> list[tuple[Path, os.stat_result]]:
        return [(path, status) for path, status in self._statuses() if path not in self._active]

    def _statuses(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._files():
            with contextlib.suppress(FileNotFoundError):
                yield path, path.lstat()

    def _files(self) -> list[Path]:
        return list(self._layout.partial.iterdir())
