"""Reading a recording: its state at any moment, and what changed from there on.

Only the heads of blocks are read at first. A file whose writer was killed ends with a block that is
not whole; everything before it counts, and `cut` says what was lost. A block in the middle that is
damaged is an error when it is read, with its place.
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
    Header,
    Part,
    RecordingError,
    is_sound,
    payload_of,
    read_block,
)
from bayplan.recordings.objects import Identity, Recorded, decoded, identity_of

LATEST_YEAR = 9000
"""Such that every moment of a recording has a date."""
STATE_BYTES, STATE_RATIO = 256 << 20, 100
"""How much all objects of a moment may be, unpacked: so many bytes, and so many times the file's.
JSON that is no bomb packs to a tenth or a fiftieth.
"""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ObjectError, ValueError)


class Change(NamedTuple):
    """One step: an object is there or has changed, or (None) is gone."""

    seq: int
    """Its number, from 1."""
    at: float
    identity: Identity
    object: Recorded | None


class State(NamedTuple):
    """All objects at a moment."""

    seq: int
    """The number of the last change that led to it."""
    at: float
    objects: dict[Identity, Recorded]


class _Line(msgspec.Struct):
    at: float
    set: msgspec.Raw = msgspec.Raw(b"null")
    drop: Identity | None = None


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_header = msgspec.json.Decoder(Header).decode


class _Head(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: dict[str, object] = {}


_decode_head = msgspec.json.Decoder(_Head).decode


class Recording:
    """An open recording; RecordingError if it is none, OSError if it cannot be opened."""

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
            raise RecordingError(f"{path}: cut before it began, at byte {len(first)}")
        if first != MAGIC:
            raise RecordingError(f"{path}: not a recording of this version of Bayplan")
        self.bytes = os.fstat(self._file.fileno()).st_size
        self._most = STATE_BYTES + STATE_RATIO * self.bytes
        blocks = list(islice(self._blocks(), MOST_BLOCKS + 1))
        if len(blocks) > MOST_BLOCKS:
            raise RecordingError(f"{path}: more than {MOST_BLOCKS} blocks")
        self.cut = self.bytes - (blocks[-1].end if blocks else len(MAGIC))
        """How many bytes at the end cannot be read."""
        if not blocks or blocks[0].part is not Part.HEADER:
            raise RecordingError(f"{path}: cut before it began")
        try:
            header = _decode_header(payload_of(self._file, blocks[0]))
        except _UNREADABLE as error:
            raise RecordingError(f"{path}: its header cannot be read: {error}") from None
        start = read_time(header.start)
        if start is None:
            raise RecordingError(f"{path}: its header does not say when it began")
        if start.year > LATEST_YEAR:
            raise RecordingError(f"{path}: its header says that it began in {start.year}")
        self.name, self.start = header.name, start
        self._changes = [one for one in blocks if one.part is Part.CHANGES]
        self._keyframes = _whole_keyframes(blocks)
        self.seconds = self._last_moment(blocks)

    @property
    def end(self) -> datetime:
        """The last moment of it."""
        return self.start + timedelta(seconds=self.seconds)

    def moment(self, at: float) -> datetime:
        """The date of a moment."""
        return self.start + timedelta(seconds=at)

    def state_at(self, at: float) -> State:
        """All objects at a moment: after everything that had happened by then."""
        index = bisect_right([one[-1].at for one in self._keyframes], at) - 1
        found = self._played(index, lambda change: change.at <= at)
        return found._replace(at=max(found.at, min(at, self.seconds)))

    def state_after(self, seq: int) -> State:
        """All objects after a change."""
        index = bisect_right([one[-1].seq for one in self._keyframes], seq) - 1
        return self._played(index, lambda change: change.seq <= seq)

    def _played(self, index: int, until: Callable[[Change], bool]) -> State:
        """From a keyframe (-1 is the empty beginning) on, as long as changes count."""
        seq, moment, objects = 0, 0.0, dict[Identity, Recorded]()
        if index >= 0:
            last = self._keyframes[index][-1]
            seq, moment, objects = last.seq, last.at, self._keyframe(index)
        for change in self._after(seq, self._most):
            if not until(change):
                break
            put(objects, change)
            seq, moment = change.seq, change.at
        return State(seq, moment, objects)

    def after(self, seq: int) -> Iterator[Change]:
        """The changes after that one, in order."""
        return self._after(seq)

    def _after(self, seq: int, most: float = inf) -> Iterator[Change]:
        """The same; RecordingError if more than so many bytes are unpacked for it."""
        index = max(0, bisect_right([one.seq for one in self._changes], seq) - 1)
        while index > 0 and self._changes[index].seq == seq == self._changes[index - 1].seq:
            index -= 1
        for block in self._changes[index:]:
            payload = payload_of(self._file, block)
            most = _left(most, payload, block)
            for number, line in enumerate(_lines(payload), block.seq + 1):
                if number > seq:
                    yield _change(number, line, block)

    def close(self) -> None:
        """Let go of the file."""
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
        """Every block that is whole; the last is looked into, since its writer may have died."""
        offset, found = len(MAGIC), read_block(self._file, len(MAGIC))
        while found is not None and found.end <= self.bytes:
            offset = found.end
            following = read_block(self._file, offset)
            is_last = following is None or following.end > self.bytes
            if is_last:
                self._file.seek(found.offset + HEAD_BYTES)
                if not is_sound(found, self._file.read(found.length)):
                    return
            yield found
            found = following

    def _keyframe(self, index: int) -> dict[Identity, Recorded]:
        found: dict[Identity, Recorded] = {}
        most: float = self._most
        for block in self._keyframes[index]:
            payload = payload_of(self._file, block)
            most = _left(most, payload, block)
            for line in _lines(payload):
                obj = _object(line, block)
                found[identity_of(obj)] = obj
        return found

    def _last_moment(self, blocks: list[Block]) -> float:
        last = max(one.at for one in blocks)
        if self._changes:
            payload = payload_of(self._file, self._changes[-1])
            if payload:
                line = payload.rsplit(b"\n", 1)[-1]
                last = max(last, _change(0, line, self._changes[-1]).at)
        return last


def put(objects: dict[Identity, Recorded], change: Change) -> None:
    """Make a change."""
    if change.object is None:
        objects.pop(change.identity, None)
    else:
        objects[change.identity] = change.object


def _whole_keyframes(blocks: list[Block]) -> list[list[Block]]:
    found: list[list[Block]] = []
    parts: list[Block] = []
    for block in blocks:
        if block.part is Part.KEYFRAME:
            parts.append(block)
        elif block.part is Part.KEYFRAME_END:
            found.append([*parts, block])
            parts = []
        else:
            parts = []
    return found


def _lines(data: bytes) -> Iterator[bytes]:
    return iter(io.BytesIO(data))


def _left(most: float, payload: bytes, block: Block) -> float:
    """What may still be unpacked after a block."""
    if len(payload) > most:
        raise RecordingError(f"the objects up to the block at byte {block.offset} are too large")
    return most - len(payload)


def _change(seq: int, line: bytes, block: Block) -> Change:
    try:
        found = _decode_line(line)
        if not 0.0 <= found.at <= LONGEST_SECONDS:
            raise ValueError("at: not a moment")
        if found.drop is not None:
            return Change(seq, found.at, Identity(*found.drop), None)
        obj = _decoded(found.set)
    except _UNREADABLE as error:
        raise RecordingError(f"the block at byte {block.offset} cannot be read: {error}") from None
    return Change(seq, found.at, identity_of(obj), obj)


def _object(line: bytes, block: Block) -> Recorded:
    try:
        return _decoded(msgspec.Raw(line))
    except _UNREADABLE as error:
        raise RecordingError(f"the block at byte {block.offset} cannot be read: {error}") from None


def _decoded(data: msgspec.Raw) -> Recorded:
    head = _decode_head(data)
    return decoded(Identity(head.api_version, head.kind, str(head.metadata.get("name"))), data)
