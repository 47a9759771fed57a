"""The bytes of a recording: a line with the format's name, then blocks, each with a checksum.

A writer that is killed loses only the block that it was writing. A block's head has the number of
changes before it and the time at which it begins, so that a reader finds any moment by the heads
alone.
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
"""The largest block, packed or unpacked."""
BLOCK_BYTES = 1 << 20
"""How many bytes are buffered before a block is written."""
MOST_BLOCKS = 4_000_000
"""The maximum number of blocks: a reader holds all their heads."""
LONGEST_SECONDS = 100 * 366 * 86400.0
"""A hundred years, the latest moment of a recording."""
_LEVEL = 6


class RecordingError(ValueError):
    """A file that is not a recording, or is damaged."""


class BlockType(IntEnum):
    """What a block holds."""

    HEADER = 1
    """What was recorded, and from when."""
    KEYFRAME = 2
    """A part of all objects; more follow."""
    KEYFRAME_END = 3
    """The last part: the keyframe is complete."""
    CHANGES = 4


class Header(msgspec.Struct):
    """The contents of the first block."""

    name: str
    """What was recorded."""
    start: str
    """When it began, as a Kubernetes timestamp."""


class Block(NamedTuple):
    """The offset and head of a block."""

    offset: int
    block_type: BlockType
    length: int
    checksum: int
    seq: int
    """The number of changes before it."""
    at: float
    """Seconds from the beginning."""

    @property
    def end(self) -> int:
        """The offset of the next block."""
        return self.offset + HEAD_BYTES + self.length


def pack_block(block_type: BlockType, seq: int, at: float, data: bytes) -> bytes:
    """Return the bytes of a block."""
    payload = zstandard.ZstdCompressor(level=_LEVEL, write_content_size=True).compress(data)
    head = _HEAD.pack(
        _MARK, block_type, len(payload), _checksum(block_type, seq, at, payload), seq, at
    )
    return head + payload


def read_block(file: BinaryIO, offset: int) -> Block | None:
    """Read the head of the block at an offset; None if there is no valid one."""
    file.seek(offset)
    head = file.read(HEAD_BYTES)
    if len(head) < HEAD_BYTES:
        return None
    mark, block_type, length, checksum, seq, at = _HEAD.unpack(head)
    known = (
        mark == _MARK
        and block_type in set(BlockType)
        and length <= LARGEST_BLOCK
        and 0.0 <= at <= LONGEST_SECONDS
    )
    return Block(offset, BlockType(block_type), length, checksum, seq, at) if known else None


def read_payload(file: BinaryIO, block: Block) -> bytes:
    """Read the contents of a block; RecordingError if it is damaged."""
    file.seek(block.offset + HEAD_BYTES)
    payload = file.read(block.length)
    if len(payload) < block.length or not has_valid_checksum(block, payload):
        raise RecordingError(f"the block at byte {block.offset} is damaged")
    try:
        size = zstandard.frame_content_size(payload)
        if not 0 <= size <= LARGEST_BLOCK:
            raise RecordingError(f"the block at byte {block.offset} is too large")
        return zstandard.ZstdDecompressor().decompress(payload, max_output_size=LARGEST_BLOCK)
    except zstandard.ZstdError:
        raise RecordingError(f"the block at byte {block.offset} cannot be unpacked") from None


def has_valid_checksum(block: Block, payload: bytes) -> bool:
    """Whether a block's checksum is correct."""
    return block.checksum == _checksum(block.block_type, block.seq, block.at, payload)


def _checksum(block_type: int, seq: int, at: float, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(_HEAD.pack(_MARK, block_type, len(payload), 0, seq, at)))
