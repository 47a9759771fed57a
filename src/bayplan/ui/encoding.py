"""States and changes as bytes."""

from __future__ import annotations

import zlib
from datetime import datetime
from typing import NamedTuple

import msgspec

from bayplan.kube.times import timestamp
from bayplan.ui.tables import Changes, Tables

FORMAT = 1
_GZIP = 31
"""Window bits by which zlib writes gzip."""
_QUICK = 1
_encode = msgspec.json.Encoder().encode


class Source(
    msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}, omit_defaults=True
):
    """Where the page's state comes from."""

    kind: str
    name: str
    live: bool
    start: str = ""
    end: str = ""


class Encoded(NamedTuple):
    """An answer, plain and compressed."""

    plain: bytes
    gzipped: bytes


def state(seq: int, now: datetime, source: Source, notes: list[str], tables: Tables) -> bytes:
    """The whole state."""
    return _encode(
        {
            "format": FORMAT,
            "seq": seq,
            "time": timestamp(now),
            "source": source,
            "notes": notes,
            "tables": tables.as_data(),
        }
    )


def change(seq: int, now: datetime, changes: Changes, notes: list[str] | None = None) -> bytes:
    """A difference; with notes where these have changed."""
    data: dict[str, object] = {"seq": seq, "time": timestamp(now)}
    if changes.set:
        data["set"] = changes.set
    if changes.drop:
        data["drop"] = changes.drop
    if notes is not None:
        data["notes"] = notes
    return _encode(data)


def as_event(seq: int, data: bytes) -> bytes:
    """A difference as a server-sent event: JSON has no line break of its own."""
    return b"id: %d\nevent: change\ndata: %b\n\n" % (seq, data)


def gzipped(data: bytes) -> bytes:
    """Compressed quickly: what is sent once need not be small to the last byte."""
    packer = zlib.compressobj(_QUICK, zlib.DEFLATED, _GZIP)
    return packer.compress(data) + packer.flush()
