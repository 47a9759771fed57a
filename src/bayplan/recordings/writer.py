"""Writing a recording: changes as they come, and now and then all objects there are.

Changes gather in memory until there is a block of them, or somebody says `flush`. A keyframe is due
when as much has been written since the last one as that one holds: so seeking costs a keyframe and
at most as much again, and keyframes are at most half of the file.
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
    Header,
    Part,
    packed,
)
from bayplan.recordings.objects import Identity, Recorded, encoded, identity_of

MOST_BYTES = 2 << 30
LEAST_KEYFRAME = 4 << 20
"""Bytes of changes, unpacked, before which no keyframe is written."""
LARGEST_OBJECT = 8 << 20


class RecordingFullError(Exception):
    """The file has become as large as it may."""


class RecordingWriter:
    """Appends to a file of its own; OSError if it cannot be made, or is there already."""

    def __init__(
        self, path: Path, *, name: str, start: datetime, most_bytes: int = MOST_BYTES
    ) -> None:
        self.path = path
        # It names what is in a cluster, so that others on this machine must not read it.
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._most = most_bytes
        self._state: dict[Identity, tuple[Recorded, bytes]] = {}
        """Every object there is, and a digest of what was written of it."""
        self._lines: list[bytes] = []
        self._gathered = 0
        self._first_at = 0.0
        self._since_keyframe = 0
        self._keyframe_bytes = LEAST_KEYFRAME
        self._has_keyframe = False
        self._written = 0
        self._blocks = 0
        self.seq = 0
        """How many changes there have been."""
        self.at = 0.0
        """The moment of the last one."""
        header = Header(name=name[:500], start=timestamp(start))
        self._append(MAGIC + packed(Part.HEADER, 0, 0.0, msgspec.json.encode(header)))

    def take(self, at: float, obj: Recorded) -> bool:
        """An object is there, or has changed; whether that was news."""
        identity, data = identity_of(obj), encoded(obj)
        digest = blake2b(data, digest_size=8).digest()
        known = self._state.get(identity)
        if (known is not None and known[1] == digest) or len(data) > LARGEST_OBJECT:
            return False
        self._state[identity] = (obj, digest)
        self._change(at, b'"set":' + data)
        return True

    def gone(self, at: float, identity: Identity) -> bool:
        """An object is gone; whether it was there."""
        if self._state.pop(identity, None) is None:
            return False
        self._change(at, b'"drop":' + msgspec.json.encode(identity))
        return True

    def mark(self, at: float) -> None:
        """Say that this moment has been reached, whether or not anything happened until then."""
        self.flush()
        if round(at, 3) > self.at:
            self.at = round(at, 3)
            self._append(packed(Part.CHANGES, self.seq, self.at, b""))

    def flush(self, *, sync: bool = False) -> None:
        """Write what has gathered; with `sync`, see it safe on the disk."""
        if self._lines:
            block = packed(
                Part.CHANGES, self.seq - len(self._lines), self._first_at, self._joined()
            )
            self._append(block)
        if not self._has_keyframe or self._since_keyframe >= self._keyframe_bytes:
            self._write_keyframe()
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Write what is left, and close the file."""
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
        """All objects, in blocks; only the last of them makes it whole."""
        lines: list[bytes] = []
        size = whole = 0
        for obj, _ in self._state.values():
            data = encoded(obj)
            if size + len(data) > BLOCK_BYTES and lines:
                self._append(packed(Part.KEYFRAME, self.seq, self.at, b"\n".join(lines)))
                lines, size = [], 0
            lines.append(data)
            size += len(data)
            whole += len(data)
        self._append(packed(Part.KEYFRAME_END, self.seq, self.at, b"\n".join(lines)))
        self._has_keyframe, self._since_keyframe = True, 0
        self._keyframe_bytes = max(LEAST_KEYFRAME, whole)

    def _append(self, data: bytes) -> None:
        if self._written + len(data) > self._most:
            raise RecordingFullError(f"{self.path}: as large as it may be ({self._most} bytes)")
        if self._blocks >= MOST_BLOCKS:
            raise RecordingFullError(f"{self.path}: as long as it may be ({MOST_BLOCKS} blocks)")
        self._file.write(data)
        self._blocks += 1
        self._written += len(data)


assert LARGEST_OBJECT + BLOCK_BYTES < LARGEST_BLOCK  # noqa: S101 - what is written can be read
