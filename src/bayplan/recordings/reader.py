"""Reads a recording: its state at any moment, and the changes from there on.

Only the heads of blocks are read at first. A file whose writer was killed ends with an incomplete
block; everything before it counts, and `truncated_bytes` is the length of what was lost. A damaged
block in the middle is an error when it is read, with its offset.
"""

from __future__ import annotations

import io
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from math import inf
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from bayplan.kube.codec import ObjectError
from bayplan.kube.times import read_time
from bayplan.recordings.format import (
    HEAD_BYTES,
    LONGEST_SECONDS,
    MAGIC,
    MOST_BLOCKS,
    Block,
    BlockType,
    Header,
    RecordingError,
    has_valid_checksum,
    read_block,
    read_payload,
)
from bayplan.recordings.objects import ObjectIdentity, RecordedObject, decode_object, identity_of

LATEST_YEAR = 9000
"""The latest start, so that every moment of a recording has a date."""
STATE_BYTES, STATE_RATIO = 256 << 20, 100
"""The largest state, unpacked: so many bytes plus so many times the file's size. JSON that is no
zip bomb is compressed by a factor of 10 to 50.
"""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ObjectError, ValueError)


class RecordedChange(NamedTuple):
    """A change: an object was added, updated or (None) deleted."""

    seq: int
    """Its number, from 1."""
    at: float
    identity: ObjectIdentity
    object: RecordedObject | None


class RecordedState(NamedTuple):
    """All objects at a moment."""

    seq: int
    """The number of the last change that led to it."""
    at: float
    objects: dict[ObjectIdentity, RecordedObject]


class _Line(msgspec.Struct):
    at: float
    set: msgspec.Raw = msgspec.Raw(b"null")
    drop: ObjectIdentity | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_header = msgspec.json.Decoder(Header).decode


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, object] = {}


_decode_head = msgspec.json.Decoder(_Head).decode


class Recording:
    """An open recording; RecordingError if the file is not one, OSError if it cannot be opened."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        try:
            self._open(path)
        except BaseException:
            self._file.close()
            raise

    def _open(self, path: Path) -> None:
        first = self._file.read(len(MAGIC))
        if len(first) < len(MAGIC) and MAGIC.startswith(first):
            raise RecordingError(f"{path}: truncated in its header, at byte {len(first)}")
        if first != MAGIC:
            raise RecordingError(f"{path}: not a recording of this version of Bayplan")
        self.bytes = os.fstat(self._file.fileno()).st_size
        self._max_bytes = STATE_BYTES + STATE_RATIO * self.bytes
        blocks = list(islice(self._blocks(), MOST_BLOCKS + 1))
        if len(blocks) > MOST_BLOCKS:
            raise RecordingError(f"{path}: more than {MOST_BLOCKS} blocks")
        self.truncated_bytes = self.bytes - (blocks[-1].end if blocks else len(MAGIC))
        """The number of bytes at the end that cannot be read."""
        if not blocks or blocks[0].block_type is not BlockType.HEADER:
            raise RecordingError(f"{path}: truncated in its header")
        try:
            header = _decode_header(read_payload(self._file, blocks[0]))
        except _UNREADABLE as error:
            raise RecordingError(f"{path}: its header cannot be read: {error}") from None
        start = read_time(header.start)
        if start is None:
            raise RecordingError(f"{path}: its header has no start time")
        if start.year > LATEST_YEAR:
            raise RecordingError(f"{path}: the start in its header, in {start.year}, is too late")
        self.name, self.start = header.name, start
        self._changes = [one for one in blocks if one.block_type is BlockType.CHANGES]
        self._keyframes = _whole_keyframes(blocks)
        self.seconds = self._last_moment(blocks)

    @property
    def end(self) -> datetime:
        """The last moment of the recording."""
        return self.start + timedelta(seconds=self.seconds)

    def moment(self, at: float) -> datetime:
        """Return the date of a moment."""
        return self.start + timedelta(seconds=at)

    def state_at(self, at: float) -> RecordedState:
        """Return all objects at a moment, after all changes up to it."""
        index = bisect_right([one[-1].at for one in self._keyframes], at) - 1
        found = self._replay(index, lambda change: change.at <= at)
        return found._replace(at=max(found.at, min(at, self.seconds)))

    def state_after(self, seq: int) -> RecordedState:
        """Return all objects after a change."""
        index = bisect_right([one[-1].seq for one in self._keyframes], seq) - 1
        return self._replay(index, lambda change: change.seq <= seq)

    def _replay(self, index: int, until: Callable[[RecordedChange], bool]) -> RecordedState:
        """Replay from a keyframe (-1 is the empty beginning) until a change is too late."""
        seq, moment, objects = 0, 0.0, dict[ObjectIdentity, RecordedObject]()
        if index >= 0:
            last = self._keyframes[index][-1]
            seq, moment, objects = last.seq, last.at, self._keyframe(index)
        for change in self._after(seq, self._max_bytes):
            if not until(change):
                break
            apply_change(objects, change)
            seq, moment = change.seq, change.at
        return RecordedState(seq, moment, objects)

    def after(self, seq: int) -> Iterator[RecordedChange]:
        """Yield the changes after that one, in order."""
        return self._after(seq)

    def _after(self, seq: int, most: float = inf) -> Iterator[RecordedChange]:
        """Yield the same; RecordingError if more than `most` bytes are unpacked for it."""
        index = max(0, bisect_right([one.seq for one in self._changes], seq) - 1)
        while index > 0 and self._changes[index].seq == seq == self._changes[index - 1].seq:
            index -= 1
        for block in self._changes[index:]:
            payload = read_payload(self._file, block)
            most = _left(most, payload, block)
            for number, line in enumerate(_lines(payload), block.seq + 1):
                if number > seq:
                    yield _change(number, line, block)

    def close(self) -> None:
        """Close the file."""
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

    def _blocks(self) -> Iterator[Block]:
        """Yield every complete block; the checksum of the last is checked here, since its writer
        may have been killed.
        """
        offset, found = len(MAGIC), read_block(self._file, len(MAGIC))
        while found is not None and found.end <= self.bytes:
            offset = found.end
            following = read_block(self._file, offset)
            is_last = following is None or following.end > self.bytes
            if is_last:
                self._file.seek(found.offset + HEAD_BYTES)
                if not has_valid_checksum(found, self._file.read(found.length)):
                    return
            yield found
            found = following

    def _keyframe(self, index: int) -> dict[ObjectIdentity, RecordedObject]:
        found: dict[ObjectIdentity, RecordedObject] = {}
        most: float = self._max_bytes
        for block in self._keyframes[index]:
            payload = read_payload(self._file, block)
            most = _left(most, payload, block)
            for line in _lines(payload):
                obj = _object(line, block)
                found[identity_of(obj)] = obj
        return found

    def _last_moment(self, blocks: list[Block]) -> float:
        last = max(one.at for one in blocks)
        if self._changes:
            payload = read_payload(self._file, self._changes[-1])
            if payload:
                line = payload.rsplit(b"\n", 1)[-1]
                last = max(last, _change(0, line, self._changes[-1]).at)
        return last


def apply_change(objects: dict[ObjectIdentity, RecordedObject], change: RecordedChange) -> None:
    """Apply a change to a state."""
    if change.object is None:
        objects.pop(change.identity, None)
    else:
        objects[change.identity] = change.object


def _whole_keyframes(blocks: list[Block]) -> list[list[Block]]:
    found: list[list[Block]] = []
    parts: list[Block] = []
    for block in blocks:
        if block.block_type is BlockType.KEYFRAME:
            parts.append(block)
        elif block.block_type is BlockType.KEYFRAME_END:
            found.append([*parts, block])
            parts = []
        else:
            parts = []
    return found


def _lines(data: bytes) -> Iterator[bytes]:
    return iter(io.BytesIO(data))


def _left(most: float, payload: bytes, block: Block) -> float:
    """Return how many bytes may still be unpacked after a block."""
    if len(payload) > most:
        raise RecordingError(f"the objects up to the block at byte {block.offset} are too large")
    return most - len(payload)


def _change(seq: int, line: bytes, block: Block) -> RecordedChange:
    try:
        found = _decode_line(line)
        if not 0.0 <= found.at <= LONGEST_SECONDS:
            raise ValueError("at: not a moment")
        if found.drop is not None:
            return RecordedChange(seq, found.at, ObjectIdentity(*found.drop), None)
        obj = _decoded(found.set)
    except _UNREADABLE as error:
        raise RecordingError(f"the block at byte {block.offset} cannot be read: {error}") from None
    return RecordedChange(seq, found.at, identity_of(obj), obj)


def _object(line: bytes, block: Block) -> RecordedObject:
    try:
        return _decoded(msgspec.Raw(line))
    except _UNREADABLE as error:
        raise RecordingError(f"the block at byte {block.offset} cannot be read: {error}") from None


def _decoded(data: msgspec.Raw) -> RecordedObject:
    head = _decode_head(data)
    return decode_object(
        ObjectIdentity(head.api_version, head.kind, str(head.metadata.get("name"))), data
    )
