"""A layer's bytes, decompressed, counted and hashed while they are read; limits against bombs.

The compression is detected by the first bytes, not by the media type, because real registries have
plain tars with the media type of gzip. Reading fails as soon as a limit is exceeded.
"""

import gzip
import hashlib
import threading
import zlib
from typing import IO, Protocol, cast

import msgspec
import zstandard

from bayplan.images.registry.errors import IntegrityError


class UnpackLimits(msgspec.Struct, frozen=True):
    """Limits of a single layer when it is unpacked."""

    size: int = 64 * 1024**3
    entries: int = 2_000_000  # directories that only names imply included
    ratio: int = 200  # expanded over compressed, once a layer expands beyond the floor
    ratio_floor: int = 1024**3
    header: int = 1024**2  # one entry's headers, extended attributes included
    names: int = 128 * 1024**2  # all names together

    def expanded(self, compressed: int) -> int:
        """Return the bytes that a blob of this size may expand to."""
        return min(self.size, max(self.ratio_floor, self.ratio * compressed))


def chain_ids(diff_ids: tuple[str, ...]) -> list[str]:
    """Return the OCI chain id of each layer."""
    chains: list[str] = []
    for diff_id in diff_ids:
        if chains:
            joined = hashlib.sha256(f"{chains[-1]} {diff_id}".encode()).hexdigest()
            chains.append(f"sha256:{joined}")
        else:
            chains.append(diff_id)
    return chains


_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
# zstd may need any amount of memory; this is the default limit of its own tools.
_ZSTD_WINDOW = 128 * 1024 * 1024
_CHUNK = 256 * 1024


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes:
        """Return up to so many bytes; none at the end."""


class _Stoppable:
    """A blob that can be stopped: decompressors may read much without any output."""

    def __init__(self, file: IO[bytes], stop: threading.Event) -> None:
        self._file = file
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        if self._stop.is_set():
            raise InterruptedError("unpacking was cancelled")
        return self._file.read(size)


def open_decompressed(file: IO[bytes], stop: threading.Event) -> Readable:
    """Open a layer's blob for reading, with any compression."""
    magic = file.read(4)
    file.seek(0)
    blob = cast("IO[bytes]", _Stoppable(file, stop))
    if magic[:2] == _GZIP:
        return cast("Readable", gzip.GzipFile(fileobj=blob, mode="rb"))
    if magic == _ZSTD:
        decompressor = zstandard.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        return decompressor.stream_reader(blob, read_across_frames=True, read_size=_CHUNK)
    return blob


class LayerStream:
    """The decompressed stream, with its digest and its limits."""

    def __init__(self, file: IO[bytes], limit: int, stop: threading.Event) -> None:
        self._source = open_decompressed(file, stop)
        self._limit = limit
        self._stop = stop
        self._hash = hashlib.sha256()
        self._total = 0
        self._allowance = 0

    def allow(self, size: int) -> None:
        """Set how many bytes may be read until the next call."""
        self._allowance = size

    def read(self, size: int) -> bytes:
        """Read more, within the limits."""
        data = self._take(size)
        self._allowance -= len(data)
        if self._allowance < 0:
            raise IntegrityError("a layer's entry has headers larger than allowed")
        return data

    def count(self, size: int) -> None:
        """Count bytes that are not in the stream: the holes of sparse files."""
        self._total += size
        if self._total > self._limit:
            raise IntegrityError(f"a layer expands to more than the {self._limit} bytes allowed")

    def digest(self) -> str:
        """Read the rest, and return the digest of the whole stream."""
        while self._take(_CHUNK):
            pass
        return f"sha256:{self._hash.hexdigest()}"

    def _take(self, size: int) -> bytes:
        if self._stop.is_set():
            raise InterruptedError("unpacking was cancelled")
        try:
            data = self._source.read(size)
        except (zlib.error, EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise IntegrityError(f"a layer cannot be decompressed: {error}") from error
        self.count(len(data))
        self._hash.update(data)
        return data
