"""Content by digest: written aside, verified, then moved into place whole.

An `Ingest` is one blob on its way in. It counts and hashes as it is written, so that memory stays
flat whatever the blob's size, and `keep` is refused unless both agree with the descriptor. One that
was begun before is read again from its start; what is there counts only if the whole is right.
"""

import errno
import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from bayplan.images.layers.unpack import Usage
from bayplan.images.registry.errors import IntegrityError
from bayplan.images.registry.media import Descriptor
from bayplan.images.store.layout import Layout, delete

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
        """How many bytes are there."""
        return self._received

    def resume(self) -> None:
        """Take over what an earlier attempt left; it may take its time."""
        if os.fstat(self._file.fileno()).st_size > self._descriptor.size:
            self.restart()
        while chunk := self._file.read(_READ):
            self._hash.update(chunk)
            self._received += len(chunk)

    def write(self, data: bytes) -> None:
        """Take the next bytes."""
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) :]
        self._hash.update(data)
        self._received += len(data)

    def restart(self) -> None:
        """Forget everything received."""
        self._file.seek(0)
        self._file.truncate()
        self._hash = hashlib.new(self._algorithm)
        self._received = 0

    def delivered(self) -> None:
        """Tell whoever watches how far it has come."""
        if self._listener:
            self._listener(self._received)

    def verify(self) -> None:
        """Raise unless the size and the digest are what was announced."""
        wanted = self._descriptor
        if self._received != wanted.size:
            raise IntegrityError(
                f"{wanted.digest} came with {self._received} bytes instead of {wanted.size}"
            )
        actual = f"{self._algorithm}:{self._hash.hexdigest()}"
        if actual != wanted.digest:
            raise IntegrityError(f"{wanted.digest} came with the digest {actual}")

    def close(self) -> None:
        """Stop writing."""
        self._file.close()

    def discard(self) -> None:
        """Throw it away."""
        self.close()
        self.path.unlink(missing_ok=True)


class ContentStore:
    """Blobs, and how much they occupy."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._sizes = {
            path.name.replace("-", ":", 1): path.stat().st_blocks * _BLOCK
            for path in layout.blobs.iterdir()
        }

    def digests(self) -> list[str]:
        """List everything kept."""
        return list(self._sizes)

    def has(self, digest: str) -> bool:
        """Say whether a blob is here, whole."""
        return digest in self._sizes

    def path(self, digest: str) -> Path:
        """Say where a blob lies."""
        return self._layout.blob(digest)

    def read(self, digest: str) -> bytes:
        """Read a small blob."""
        return self.path(digest).read_bytes()

    def size(self, digest: str) -> int:
        """Say how many bytes a blob has."""
        return self.path(digest).stat().st_size

    def ingest(
        self, descriptor: Descriptor, listener: Callable[[int], None] | None = None
    ) -> Ingest:
        """Start receiving a blob."""
        return Ingest(self._layout.scratch(), descriptor, listener)

    def keep(self, ingest: Ingest, digest: str) -> None:
        """Verify a blob and move it into place."""
        ingest.verify()
        ingest.close()
        self._sizes[digest] = ingest.path.stat().st_blocks * _BLOCK
        ingest.path.rename(self.path(digest))

    def keep_also(self, ingest: Ingest, digest: str) -> None:
        """Verify a blob and have it in place, and where it was received as well."""
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
        """Keep a small blob that is already in memory."""
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
        """Take a blob out at once; give back what is left to delete."""
        self._sizes.pop(digest, None)
        return self._layout.discard(self.path(digest))

    def usage(self) -> Usage:
        """Count what all blobs occupy."""
        sizes = list(self._sizes.values())
        return Usage(sum(sizes), len(sizes))


class ChainStore:
    """Unpacked chains, and how much each occupies besides the files it shares with its parent."""

    def __init__(self, layout: Layout, known: dict[str, Usage]) -> None:
        self._layout = layout
        there = {path.name.replace("-", ":", 1) for path in layout.chains.iterdir()}
        self._usages = {chain: usage for chain, usage in known.items() if chain in there}
        for stray in there - set(known):
            if rubbish := layout.discard(layout.chain(stray)):
                delete(rubbish)

    def has(self, chain_id: str) -> bool:
        """Say whether a chain is here, whole."""
        return chain_id in self._usages

    def path(self, chain_id: str) -> Path:
        """Say where a chain lies."""
        return self._layout.chain(chain_id)

    def keep(self, directory: Path, chain_id: str, usage: Usage) -> None:
        """Move a finished directory into place."""
        directory.rename(self.path(chain_id))
        self._usages[chain_id] = usage

    def remove(self, chain_id: str) -> Path | None:
        """Take a chain out at once; give back what is left to delete."""
        self._usages.pop(chain_id, None)
        return self._layout.discard(self.path(chain_id))

    def usages(self) -> dict[str, Usage]:
        """Give every chain with what it occupies."""
        return dict(self._usages)

    def usage(self) -> Usage:
        """Count what all chains occupy."""
        # Metrics are asked for in another thread; the copy is made at one blow.
        usages = list(self._usages.values())
        return Usage(sum(one.bytes for one in usages), sum(one.inodes for one in usages))
