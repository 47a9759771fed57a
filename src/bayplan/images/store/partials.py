"""Downloads that did not become an image: kept for a while, so that the next pull continues them.

A blob is received in a file of its own, named by its digest and the repository it comes from, and
stays there until its image is in the catalogue. Whatever ends the pull before that, the process
killed included, leaves what had come. The next pull of that repository reads it again, since it was
never made durable, and asks for the rest. Nothing here is an image's, so it is bounded: by age, by
size, by number and by the room that is left on the disk; the oldest go first.
"""

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from bayplan.images.layers.clone import Usage
from bayplan.images.store.layout import Layout
from bayplan.kube.imagereferences import Repository

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
