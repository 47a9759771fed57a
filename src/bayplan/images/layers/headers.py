"""The headers of a layer's archive, parsed safely where `tarfile` does not.

With a hostile archive, the library keeps every global header in memory, parses extended headers by
patterns that take for ever on a megabyte of digits, and trusts the size of a sparse file. So
extended headers are parsed here: by their lengths, each once, and only the used fields are kept.
Global headers are skipped, as in containerd.
"""

import math
import tarfile
from collections.abc import Callable
from typing import IO, Self, cast

from bayplan.images.registry.errors import IntegrityError

XATTR = "SCHILY.xattr."
_SPARSE = "GNU.sparse."
_LENGTH_DIGITS = 10
_NUMBERS: dict[str, Callable[[str], float]] = {
    "size": int,
    "uid": int,
    "gid": int,
    "mtime": float,
}
_MOST = {"size": 1 << 63, "uid": 1 << 32, "gid": 1 << 32, "mtime": 0}
_NAMES = {"path": "name", "linkpath": "linkname"}
_OF_SPARSE = ("name", "major", "minor", "map", "size", "realsize", "offset", "numbytes")
_USED = {*_NUMBERS, *_NAMES, *(f"{_SPARSE}{name}" for name in _OF_SPARSE)}
_COPY = 256 * 1024
_MAP_NUMBERS = 20
"""Digits of a number in a sparse file's map, at most."""

Records = list[tuple[str, str]]
Sparse = list[tuple[int, int]]


class LayerMember(tarfile.TarInfo):
    """A member of a layer's archive."""

    def _proc_member(self, archive: tarfile.TarFile) -> Self:
        """Parse the header; `tarfile` calls this method of the member class."""
        if self.type == tarfile.XGLTYPE:
            self._body(archive)
            return self.fromtarfile(archive)
        if self.type in {tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE}:
            return self._extended(archive)
        return cast("Self", super()._proc_member(archive))  # type: ignore[misc]

    def _body(self, archive: tarfile.TarFile) -> bytes:
        data = cast("IO[bytes]", archive.fileobj).read(_blocks(self.size))
        if len(data) != _blocks(self.size):
            raise IntegrityError("a layer ends inside of a header")
        return data[: self.size]

    def _extended(self, archive: tarfile.TarFile) -> Self:
        records = parse_records(self._body(archive))
        member = self.fromtarfile(archive)
        member.apply(records, archive)
        return member

    def apply(self, records: Records, archive: tarfile.TarFile) -> None:
        """Apply the records of an extended header to this member."""
        stored = self.size
        for keyword, value in records:
            self._apply(keyword, value)
        if self.size != stored:
            # The next header is behind the data, whose size differs from the first header's.
            moved = _blocks(self.size) if self.isreg() else 0
            archive.offset = self.offset_data + moved
        self._apply_sparse(records, archive)

    def _apply(self, keyword: str, value: str) -> None:
        if keyword in _NUMBERS:
            setattr(self, keyword, _checked(keyword, value))
        elif keyword in _NAMES:
            setattr(self, _NAMES[keyword], value.rstrip("/") if keyword == "path" else value)
        elif keyword.startswith(XATTR):
            self.pax_headers = {**self.pax_headers, keyword: value}

    def _apply_sparse(self, records: Records, archive: tarfile.TarFile) -> None:
        """Parse the map of a sparse file, in any of GNU's three formats."""
        fields = {key.removeprefix(_SPARSE): text for key, text in records if key[:11] == _SPARSE}
        if not fields:
            return
        self.name = fields.get("name", self.name)
        if (fields.get("major"), fields.get("minor")) == ("1", "0"):
            pieces = self._map_of_body(archive)
        elif "map" in fields:
            pieces = _pairs(fields["map"].split(","))
        else:
            both = {f"{_SPARSE}offset", f"{_SPARSE}numbytes"}
            pieces = _pairs([text for key, text in records if key in both])
        self.sparse = cast("bytes", pieces)  # the library's types are wrong about its lists
        self.size = _number(fields.get("realsize", fields.get("size", str(self.size))))

    def _map_of_body(self, archive: tarfile.TarFile) -> Sparse:
        """Parse the map before the data: the count of pairs, then the pairs."""
        source = cast("IO[bytes]", archive.fileobj)
        lines: list[bytes] = []
        rest, wanted = b"", 1
        while len(lines) < wanted:
            block = source.read(tarfile.BLOCKSIZE)
            if len(block) != tarfile.BLOCKSIZE:
                raise IntegrityError("a layer ends inside of a sparse file's map")
            *whole, rest = (rest + block).split(b"\n")
            lines += whole
            if len(rest) > tarfile.BLOCKSIZE:
                raise IntegrityError("a layer has a sparse file whose map cannot be read")
            if lines:
                wanted = 1 + 2 * _number(lines[0].decode("ascii", "replace"))
        self.offset_data = source.tell()
        return _pairs([line.decode("ascii", "replace") for line in lines[1:wanted]])


def parse_records(data: bytes) -> Records:
    """Parse an extended header: records of `length keyword=value`."""
    records: Records = []
    position = 0
    while position < len(data) and data[position]:
        blank = data.find(b" ", position, position + _LENGTH_DIGITS + 1)
        digits = data[position:blank] if blank > 0 else b""
        end = position + int(digits) if digits.isdigit() else 0
        record = data[blank + 1 : end - 1]
        keyword, equals, value = record.partition(b"=")
        if end > len(data) or data[end - 1 : end] != b"\n" or not equals or end <= blank:
            raise IntegrityError("a layer has an extended header that cannot be read")
        if (name := keyword.decode("utf-8", "surrogateescape")) in _USED or name[:13] == XATTR:
            records.append((name, value.decode("utf-8", "surrogateescape")))
        position = end
    return records


def _checked(keyword: str, value: str) -> float:
    try:
        number = _NUMBERS[keyword](value)
    except ValueError:
        number = math.nan
    if not (keyword == "mtime" and math.isfinite(number)) and not 0 <= number < _MOST[keyword]:
        raise IntegrityError(f"a layer's header has {keyword}={value[:40]!r}")
    return number


def _blocks(size: int) -> int:
    return -(-size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE


def _number(text: str) -> int:
    if len(text) > _MAP_NUMBERS or not (text.isascii() and text.isdigit()):
        raise IntegrityError("a layer has a sparse file whose map cannot be read")
    return int(text)


def _pairs(texts: list[str]) -> Sparse:
    if len(texts) % 2:
        raise IntegrityError("a layer has a sparse file whose map cannot be read")
    numbers = [_number(text) for text in texts]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def check_sparse(member: tarfile.TarInfo) -> Sparse | None:
    """Return the checked pieces of a sparse file; None if it is not one."""
    if member.sparse is None:
        return None
    # The last piece may be empty, to mark the file's end; GNU's old format pads with zeros.
    pieces, end = [piece for piece in cast("Sparse", member.sparse) if piece[1]], 0
    for offset, size in pieces:
        if size < 0 or offset < end or offset + size > member.size:
            raise IntegrityError(f"a layer's sparse file {member.name!r} has an impossible map")
        end = offset + size
    return pieces


def copy_pieces(
    archive: tarfile.TarFile, file: IO[bytes], member: tarfile.TarInfo, pieces: Sparse
) -> None:
    """Copy the pieces of a file; holes stay holes."""
    content = cast("IO[bytes]", archive.fileobj)
    content.seek(member.offset_data)
    for offset, size in pieces:
        file.seek(offset)
        _copy(content, file, member, size)
    file.truncate(member.size)


def _copy(content: IO[bytes], file: IO[bytes], member: tarfile.TarInfo, left: int) -> None:
    while left:
        chunk = content.read(min(left, _COPY))
        if not chunk:
            raise IntegrityError(f"a layer ends inside of {member.name!r}")
        file.write(chunk)
        left -= len(chunk)
