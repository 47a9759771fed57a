"""Encoding of states and changes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

import msgspec

from bayplan.kube.times import timestamp
from bayplan.ui.tables import COLUMNS, Changes, Tables

FORMAT = 1
_GZIP = 31
"""Window bits for zlib to write gzip."""
_QUICK = 1
_PART = 2000
"""Rows that are encoded at a time, so that other threads can run in between."""
_encode = msgspec.json.Encoder().encode


class PageSource(
    msgspec.Struct, frozen=True, rename={"start": "from", "end": "to"}, omit_defaults=True
):
    """The source of the page's data."""

    kind: str
    name: str
    live: bool
    start: str = ""
    end: str = ""


class Encoded(NamedTuple):
    """A response, plain and compressed."""

    plain: bytes
    gzipped: bytes


class PageState:
    """The whole state at one time, which can be encoded in any thread."""

    def __init__(
        self, seq: int, now: datetime, source: PageSource, notes: list[str], tables: Tables
    ) -> None:
        self._head: dict[str, object] = {
            "format": FORMAT,
            "seq": seq,
            "time": timestamp(now),
            "source": source,
            "notes": notes,
        }
        self._rows = tables.rows()

    def encoded(self) -> Encoded:
        """Return the state, plain and compressed."""
        packer, plain, packed = _packer(), list[bytes](), list[bytes]()
        for part in self._parts():
            plain.append(part)
            packed.append(packer.compress(part))
        return Encoded(b"".join(plain), b"".join((*packed, packer.flush())))

    def _parts(self) -> Iterator[bytes]:
        yield _encode(self._head)[:-1] + b',"tables":{'
        for number, (name, columns) in enumerate(COLUMNS.items()):
            opening = b'%b:{"columns":%b,"rows":[' % (_encode(name), _encode(columns))
            yield b"," + opening if number else opening
            rows = self._rows[name]
            for first in range(0, len(rows), _PART):
                part = _encode(rows[first : first + _PART])[1:-1]
                yield b"," + part if first else part
            yield b"]}"
        yield b"}}"


def change(seq: int, now: datetime, changes: Changes, notes: list[str] | None = None) -> bytes:
    """Encode a change, with notes if they have changed."""
    data: dict[str, object] = {"seq": seq, "time": timestamp(now)}
    if changes.set:
        data["set"] = changes.set
    if changes.drop:
        data["drop"] = changes.drop
    if notes is not None:
        data["notes"] = notes
    return _encode(data)


def as_event(seq: int, data: bytes) -> bytes:
    """Return a change as a server-sent event; its JSON has no line breaks."""
    return b"id: %d\nevent: change\ndata: %b\n\n" % (seq, data)


def gzipped(data: bytes) -> bytes:
    """Compress data with the fastest level."""
    packer = _packer()
    return packer.compress(data) + packer.flush()


def _packer() -> zlib._Compress:
    return zlib.compressobj(_QUICK, zlib.DEFLATED, _GZIP)
