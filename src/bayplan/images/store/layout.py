"""The store's directory: what lies where, and who may touch it.

    root/
      images.db     the catalogue; what it does not name does not exist
      blobs/        content by digest, as it came from the registry
      chains/       complete root file systems by chain id
      partial/      downloads under way, and those that a failed pull left to be continued
      ingest/       other work under way, and rubbish; emptied at every start

Content is written under `partial` or `ingest` and moved into place when it is whole. Before the
catalogue names it, one barrier makes everything durable, so after a crash at any moment an entry of
the catalogue has all of its content, and anything else is swept away.
"""

import ctypes
import fcntl
import os
import shutil
import uuid
from pathlib import Path
from typing import Self


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
