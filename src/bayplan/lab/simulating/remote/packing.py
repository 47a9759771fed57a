"""Inputs and results as ConfigMaps carry them: compressed JSON, and no more than fits into one."""

from __future__ import annotations

import base64
import binascii

import msgspec
import zstandard

from bayplan.client import Untyped
from bayplan.lab.simulating.orders import Inputs
from bayplan.lab.simulating.remote.objects import RESULT

MOST_BYTES = 768 << 10
"""A ConfigMap takes a mebibyte, of which base64 and metadata have their share."""
MOST_UNPACKED = 256 << 20


class PackingError(ValueError):
    """Something that is too large, or cannot be unpacked."""


def pack(data: bytes, what: str) -> bytes:
    """Compressed; PackingError if it is too large even so."""
    packed = zstandard.ZstdCompressor(level=10).compress(data)
    if len(packed) > MOST_BYTES:
        raise PackingError(
            f"{what} take {len(packed):,} bytes, compressed, and a ConfigMap takes {MOST_BYTES:,}"
        )
    return packed


def unpack(packed: bytes) -> bytes:
    """As it was; PackingError if it is damaged or absurdly large."""
    try:
        size = zstandard.frame_content_size(packed)
        if not 0 <= size <= MOST_UNPACKED:
            raise PackingError("larger than any input or result is")
        return zstandard.ZstdDecompressor().decompress(packed)
    except zstandard.ZstdError as problem:
        raise PackingError(f"cannot be unpacked: {problem}") from None


def pack_inputs(inputs: Inputs) -> bytes:
    """All that the runs need."""
    return pack(msgspec.json.encode(inputs), "the cluster files and the trace")


def unpack_inputs(packed: bytes) -> Inputs:
    """All that the runs need; PackingError if it is something else."""
    try:
        return msgspec.json.decode(unpack(packed), type=Inputs)
    except msgspec.DecodeError as problem:
        raise PackingError(f"no inputs of simulations: {problem}") from None


def result_in(config_map: Untyped) -> bytes | None:
    """The result that a ConfigMap has; None if it has none yet."""
    data = config_map.get("binaryData")
    text = data.get(RESULT) if isinstance(data, dict) else None
    if not isinstance(text, str):
        return None
    try:
        return unpack(base64.b64decode(text, validate=True))
    except binascii.Error as problem:
        raise PackingError(f"no base64: {problem}") from None
