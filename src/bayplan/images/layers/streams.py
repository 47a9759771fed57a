"""A layer's bytes, decompressed, counted and hashed while they are read; bounds against bombs.

The compression is told from the first bytes, not from the media type, because real registries hold
plain tars labelled gzip. Reading stops with an error as soon as a bound is passed, so a bomb costs
no more than the bound.
"""

import gzip
import hashlib
import threading
import zlib
from typing import IO, Protocol, cast

import msgspec
import zstandard

from bayplan.images.registry.errors import IntegrityError


class Limits(msgspec.Struct, frozen=True):
    """What a single layer may at most unpack to."""

    size: int = 64 * 1024**3
    entries: int = 2_000_000  # directories that only names imply included
    ratio: int = 200  # expanded over compressed, once a layer expands beyond the floor
    ratio_floor: int = 1024**3
    header: int = 1024**2  # one entry's headers, extended attributes included
    names: int = 128 * 1024**2  # all names together, as they are remembered

    def expanded(self, compressed: int) -> int:
        """Say how many bytes a blob of this size may expand to."""
        return min(self.size, max(self.ratio_floor, self.ratio * compressed))


def chain_ids(diff_ids: tuple[str, ...]) -> list[str]:
    """Name each layer together with everything below it, as the OCI image spec does."""
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
# zstd may ask for any amount of memory; this is what its own tools allow by default.
_ZSTD_WINDOW = 128 * 1024 * 1024
_CHUNK = 256 * 1024


class Readable(Protocol):
    """Anything with bytes to read."""

    def read(self, size: int, /) -> bytes:
        """Give up to so many bytes; none at the end."""


class _Stoppable:
    """A blob that can be told to end: decompressors may read much of one and give nothing."""

    def __init__(self, file: IO[bytes], stop: threading.Event) -> None:
        self._file = file
        self._stop = stop

    def read(self, size: int = -1) -> bytes:
        if self._stop.is_set():
            raise InterruptedError("unpacking was given up")
        return self._file.read(size)


def open_decompressed(file: IO[bytes], stop: threading.Event) -> Readable:
    """Open a layer's blob for reading, whatever it is compressed with."""
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
    """The decompressed stream, with its digest and its bounds."""

    def __init__(self, file: IO[bytes], limit: int, stop: threading.Event) -> None:
        self._source = open_decompressed(file, stop)
        self._limit = limit
        self._stop = stop
        self._hash = hashlib.sha256()
        self._total = 0
        self._allowance = 0

    def allow(self, size: int) -> None:
        """Let the reader take so many more bytes before it says otherwise."""
        self._allowance = size

    def read(self, size: int) -> bytes:
        """Read on, within the bounds."""
        data = self._take(size)
        self._allowance -= len(data)
        if self._allowance < 0:
            raise IntegrityError("a layer's entry has headers larger than allowed")
        return data

    def count(self, size: int) -> None:
        """Count what is not in the stream but in what it expands to: the holes of sparse files."""
        self._total += size
        if self._total > self._limit:
            raise IntegrityError(f"a layer expands to more than the {self._limit} bytes allowed")

    def digest(self) -> str:
        """Read what is left and give the digest of the whole."""
        while self._take(_CHUNK):
            pass
        return f"sha256:{self._hash.hexdigest()}"

    def _take(self, size: int) -> bytes:
        if self._stop.is_set():
            raise InterruptedError("unpacking was given up")
        try:
            data = self._source.read(size)
        except (zlib.error, EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
            raise IntegrityError(f"a layer cannot be decompressed: {error}") from error
        self.count(len(data))
        self._hash.update(data)
        return data
