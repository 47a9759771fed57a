"""The bytes of a recording: a line that says what it is, then blocks, each with its own checksum.

A block is whole or it is not there: whoever is killed while writing loses the block that was being
written. Its head says how many changes came before it and when it begins, so that a reader finds
any moment by the heads alone.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from struct import Struct
from typing import BinaryIO, NamedTuple

import msgspec
import zstandard

MAGIC = b"bayplan recording 1\n"
_MARK = b"BPRB"
_HEAD = Struct("<4sBIIQd")
HEAD_BYTES = _HEAD.size
LARGEST_BLOCK = 64 << 20
"""No block is larger, packed or unpacked."""
BLOCK_BYTES = 1 << 20
"""How much is put into a block before it is written."""
MOST_BLOCKS = 4_000_000
"""No recording has more: their heads are all held by who reads it."""
LONGEST_SECONDS = 100 * 366 * 86400.0
"""A hundred years: no moment of a recording is later."""
_LEVEL = 6


class RecordingError(ValueError):
    """A file that is no recording, or that cannot be read further."""


class Part(IntEnum):
    """What a block holds."""

    HEADER = 1
    """What was recorded, by whom and from when."""
    KEYFRAME = 2
    """Some of all objects there are; more follow."""
    KEYFRAME_END = 3
    """The last of them: the keyframe is whole."""
    CHANGES = 4


class Header(msgspec.Struct):
    """What the first block says."""

    name: str
    """What was recorded."""
    start: str
    """When it began, as Kubernetes writes moments."""


class Block(NamedTuple):
    """Where a block is, and what its head says."""

    offset: int
    part: Part
    length: int
    checksum: int
    seq: int
    """How many changes came before it."""
    at: float
    """Seconds from the beginning."""

    @property
    def end(self) -> int:
        """Where the next one begins."""
        return self.offset + HEAD_BYTES + self.length


def packed(part: Part, seq: int, at: float, data: bytes) -> bytes:
    """A block as it is written."""
    payload = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)
    head = _HEAD.pack(_MARK, part, len(payload), _checksum(part, seq, at, payload), seq, at)
    return head + payload


def read_block(file: BinaryIO, offset: int) -> Block | None:
    """The head of the block at an offset; None if there is none that makes sense."""
    file.seek(offset)
    head = file.read(HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    mark, part, length, checksum, seq, at = _HEAD.unpack(head)
    known = (
        mark == _MARK
        and part in set(Part)
        and length <= LARGEST_BLOCK
        and 0.0 <= at <= LONGEST_SECONDS
    )
    return Block(offset, Part(part), length, checksum, seq, at) if known else None


def payload_of(file: BinaryIO, block: Block) -> bytes:
    """What a block holds; RecordingError if it is damaged."""
    file.seek(block.offset + HEAD_BYTES)
    payload = file.read(block.length)
    if len(payload) < block.length or not is_sound(block, payload):
        raise RecordingError(f"the block at byte {block.offset} is damaged")
    try:
        size = zstandard.frame_content_size(payload)
        if not 0 <= size <= LARGEST_BLOCK:
            raise RecordingError(f"the block at byte {block.offset} is too large")
        return zstandard.ZstdDecompressor().decompress(payload, max_output_size=LARGEST_BLOCK)
    except zstandard.ZstdError:
        raise RecordingError(f"the block at byte {block.offset} cannot be unpacked") from None


def is_sound(block: Block, payload: bytes) -> bool:
    """Whether a block is as it was written."""
    return block.checksum == _checksum(block.part, block.seq, block.at, payload)


def _checksum(part: int, seq: int, at: float, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_HEAD.pack(_MARK, part, len(payload), 0, seq, at)))
