"""The content store (blobs by digest) and the snapshot store (unpacked layers by chain id).

An `Ingest` is a blob that is being received. It counts and hashes as it is written, so that memory
does not grow with the blob's size, and `keep` fails unless both match the descriptor. A resumed one
is read again from its start; it is kept only if the whole is right.
"""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from bayplan.images.layers.unpack import StoreUsage
from bayplan.images.registry.errors import IntegrityError
from bayplan.images.registry.manifests import Descriptor
from bayplan.images.store.layout import StoreLayout, delete

_BLOCK = 512
_READ = 1024 * 1024
_OPENED = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC


class Ingest:
    """A blob that is being received."""

    def __init__(
        self, path: Path, descriptor: Descriptor, listener: Callable[[int], None] | None = None
    ) -> None:
        self._descriptor = descriptor
        self._listener = listener
        self._algorithm = descriptor.digest.partition(":")[0]
        self.path = path
        self._file = os.fdopen(os.open(path, _OPENED, 0o600), "r+b", buffering=0)
        self._hash = hashlib.new(self._algorithm)
        self._received = 0

    @property
    def received(self) -> int:
        """The number of bytes received."""
        return self._received

    def resume(self) -> None:
        """Read what an earlier attempt received; this may take long."""
        if os.fstat(self._file.fileno()).st_size > self._descriptor.size:
            self.restart()
        while chunk := self._file.read(_READ):
            self._hash.update(chunk)
            self._received += len(chunk)

    def write(self, data: bytes) -> None:
        """Append bytes."""
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._hash.update(data)
        self._received += len(data)

    def restart(self) -> None:
        """Drop everything received."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.new(self._algorithm)
        self._received = 0

    def delivered(self) -> None:
        """Report progress to the listener."""
        if self._listener:
            self._listener(self._received)

    def verify(self) -> None:
        """Raise IntegrityError unless size and digest match the descriptor."""
        wanted = self._descriptor
        if self._received != wanted.size:
            raise IntegrityError(
                f"{wanted.digest} came with {self._received} bytes instead of {wanted.size}"
            )
        actual = f"{self._algorithm}:{self._hash.hexdigest()}"
        if actual != wanted.digest:
            raise IntegrityError(f"{wanted.digest} came with the digest {actual}")

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def discard(self) -> None:
        """Delete the file."""
        self.close()
        self.path.unlink(missing_ok=True)


class ContentStore:
    """Blobs by digest, and their disk usage."""

    def __init__(self, layout: StoreLayout) -> None:
        self._layout = layout
        self._sizes = {
            path.name.replace("-", ":", 1): path.stat().st_blocks * _BLOCK
            for path in layout.blobs.iterdir()
        }

    def digests(self) -> list[str]:
        """Return all digests."""
        return list(self._sizes)

    def has(self, digest: str) -> bool:
        """Return whether a complete blob is stored."""
        return digest in self._sizes

    def path(self, digest: str) -> Path:
        """Return the path of a blob."""
        return self._layout.blob(digest)

    def read(self, digest: str) -> bytes:
        """Read a small blob."""
        return self.path(digest).read_bytes()

    def size(self, digest: str) -> int:
        """Return the size of a blob."""
        return self.path(digest).stat().st_size

    def ingest(
        self, descriptor: Descriptor, listener: Callable[[int], None] | None = None
    ) -> Ingest:
        """Start receiving a blob."""
        return Ingest(self._layout.scratch(), descriptor, listener)

    def keep(self, ingest: Ingest, digest: str) -> None:
        """Verify a blob and move it into the store."""
        ingest.verify()
        ingest.close()
        self._sizes[digest] = ingest.path.stat().st_blocks * _BLOCK
        ingest.path.rename(self.path(digest))

    def link(self, ingest: Ingest, digest: str) -> None:
        """Verify a blob and link it into the store; its partial download stays."""
        ingest.verify()
        ingest.close()
        if self.has(digest):
            return
        try:
            os.link(ingest.path, self.path(digest))
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.EMLINK, errno.ENOTSUP}:
                raise
            ingest.path.rename(self.path(digest))
        self._sizes[digest] = self.path(digest).stat().st_blocks * _BLOCK

    def put(self, descriptor: Descriptor, data: bytes) -> None:
        """Store a small blob from memory."""
        if self.has(descriptor.digest):
            return
        ingest = self.ingest(descriptor)
        try:
            ingest.write(data)
            self.keep(ingest, descriptor.digest)
        except BaseException:
            ingest.discard()
            raise

    def remove(self, digest: str) -> Path | None:
        """Take a blob out of the store; return the path to delete."""
        self._sizes.pop(digest, None)
        return self._layout.discard(self.path(digest))

    def usage(self) -> StoreUsage:
        """Return the disk usage of all blobs."""
        sizes = list(self._sizes.values())
        return StoreUsage(sum(sizes), len(sizes))


class SnapshotStore:
    """Unpacked layers by chain id, and their disk usage without files shared with the parent."""

    def __init__(self, layout: StoreLayout, known: dict[str, StoreUsage]) -> None:
        self._layout = layout
        there = {path.name.replace("-", ":", 1) for path in layout.chains.iterdir()}
        self._usages = {chain: usage for chain, usage in known.items() if chain in there}
        for stray in there - set(known):
            if trash := layout.discard(layout.chain(stray)):
                delete(trash)

    def has(self, chain_id: str) -> bool:
        """Return whether a complete snapshot is stored."""
        return chain_id in self._usages

    def path(self, chain_id: str) -> Path:
        """Return the path of a snapshot."""
        return self._layout.chain(chain_id)

    def keep(self, directory: Path, chain_id: str, usage: StoreUsage) -> None:
        """Move a complete directory into the store."""
        directory.rename(self.path(chain_id))
        self._usages[chain_id] = usage

    def remove(self, chain_id: str) -> Path | None:
        """Take a snapshot out of the store; return the path to delete."""
        self._usages.pop(chain_id, None)
        return self._layout.discard(self.path(chain_id))

    def usages(self) -> dict[str, StoreUsage]:
        """Return the disk usage of every snapshot."""
        return dict(self._usages)

    def usage(self) -> StoreUsage:
        """Return the disk usage of all snapshots."""
        # Metrics are read in another thread; the copy is atomic.
        usages = list(self._usages.values())
        return StoreUsage(sum(one.bytes for one in usages), sum(one.inodes for one in usages))
