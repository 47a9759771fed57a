"""Writes a recording: changes as they come, and now and then a keyframe with all objects.

Changes are buffered until a block is full, or `flush` is called. A keyframe is written when as much
has been written since the last one as that one holds: so seeking costs a keyframe and at most as
much again, and keyframes are at most half of the file.
"""

from __future__ import annotations

import os
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from bayplan.kube.times import timestamp
from bayplan.recordings.format import (
    BLOCK_BYTES,
    LARGEST_BLOCK,
    MAGIC,
    MOST_BLOCKS,
    BlockType,
    Header,
    pack_block,
)
from bayplan.recordings.objects import ObjectIdentity, RecordedObject, encode_object, identity_of

MOST_BYTES = 2 << 30
LEAST_KEYFRAME = 4 << 20
"""Bytes of changes, unpacked, before which no keyframe is written."""
LARGEST_OBJECT = 8 << 20


class RecordingFullError(Exception):
    """The file has reached its maximum size."""


class RecordingWriter:
    """Appends to a new file; OSError if it cannot be created, or exists."""

    def __init__(
        self, path: Path, *, name: str, start: datetime, most_bytes: int = MOST_BYTES
    ) -> None:
        self.path = path
        # The file has names of the cluster's objects: other users must not read it.
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._max_bytes = most_bytes
        self._state: dict[ObjectIdentity, tuple[RecordedObject, bytes]] = {}
        """Every object, and a digest of what was written of it."""
        self._lines: list[bytes] = []
        self._gathered = 0
        self._first_at = 0.0
        self._since_keyframe = 0
        self._keyframe_bytes = LEAST_KEYFRAME
        self._has_keyframe = False
        self._written = 0
        self._blocks = 0
        self.seq = 0
        """The number of changes."""
        self.at = 0.0
        """The moment of the last change."""
        header = Header(name=name[:500], start=timestamp(start))
        self._append(MAGIC + pack_block(BlockType.HEADER, 0, 0.0, msgspec.json.encode(header)))

    def record(self, at: float, obj: RecordedObject) -> bool:
        """Record an object that was added or updated; return whether it differs."""
        identity, data = identity_of(obj), encode_object(obj)
        digest = blake2b(data, digest_size=8).digest()
        known = self._state.get(identity)
        if (known is not None and known[1] == digest) or len(data) > LARGEST_OBJECT:
            return False
        self._state[identity] = (obj, digest)
        self._change(at, b'"set":' + data)
        return True

    def record_deletion(self, at: float, identity: ObjectIdentity) -> bool:
        """Record that an object was deleted; return whether it existed."""
        if self._state.pop(identity, None) is None:
            return False
        self._change(at, b'"drop":' + msgspec.json.encode(identity))
        return True

    def mark(self, at: float) -> None:
        """Record that this moment was reached, also without a change."""
        self.flush()
        if round(at, 3) > self.at:
            self.at = round(at, 3)
            self._append(pack_block(BlockType.CHANGES, self.seq, self.at, b""))

    def flush(self, *, sync: bool = False) -> None:
        """Write the buffered changes; with `sync`, sync the file to disk."""
        if self._lines:
            block = pack_block(
                BlockType.CHANGES, self.seq - len(self._lines), self._first_at, self._joined()
            )
            self._append(block)
        if not self._has_keyframe or self._since_keyframe >= self._keyframe_bytes:
            self._write_keyframe()
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write the buffered changes, and close the file."""
        if not self._file.closed:
            try:
                self.flush(sync=True)
            finally:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _change(self, at: float, what: bytes) -> None:
        self.at = at = max(round(at, 3), self.at)
        if not self._lines:
            self._first_at = at
        line = b'{"at":%.3f,%b}' % (at, what)
        self._lines.append(line)
        self._gathered += len(line)
        self._since_keyframe += len(line)
        self.seq += 1
        if self._gathered >= BLOCK_BYTES:
            self.flush()

    def _joined(self) -> bytes:
        data = b"\n".join(self._lines)
        self._lines.clear()
        self._gathered = 0
        return data

    def _write_keyframe(self) -> None:
        """Write all objects in blocks; the last block completes the keyframe."""
        lines: list[bytes] = []
        size = whole = 0
        for obj, _ in self._state.values():
            data = encode_object(obj)
            if size + len(data) > BLOCK_BYTES and lines:
                self._append(pack_block(BlockType.KEYFRAME, self.seq, self.at, b"\n".join(lines)))
                lines, size = [], 0
            lines.append(data)
            size += len(data)
            whole += len(data)
        self._append(pack_block(BlockType.KEYFRAME_END, self.seq, self.at, b"\n".join(lines)))
        self._has_keyframe, self._since_keyframe = True, 0
        self._keyframe_bytes = max(LEAST_KEYFRAME, whole)

    def _append(self, data: bytes) -> None:
        if self._written + len(data) > self._max_bytes:
            raise RecordingFullError(f"{self.path}: maximum size reached ({self._max_bytes} bytes)")
        if self._blocks >= MOST_BLOCKS:
            raise RecordingFullError(f"{self.path}: maximum of {MOST_BLOCKS} blocks reached")
        self._file.write(data)
        self._blocks += 1
        self._written += len(data)


assert LARGEST_OBJECT + BLOCK_BYTES < LARGEST_BLOCK  # noqa: S101 - what is written can be read
