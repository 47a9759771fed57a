"""The file of a dump: a v1 List written object by object, and whole or not there at all."""

from __future__ import annotations

import gzip
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import msgspec
from msgspec.structs import replace

from bayplan.base.errors import InputError
from bayplan.kube.codec import ObjectError, encode
from bayplan.kube.loading import DumpNotes, LeftOut, Unseen
from bayplan.kube.meta import KubeObject
from bayplan.recordings.privacy import Anonymiser, release_of, scrub

_HEAD = b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":['
_COMPRESSION = 6
TELLS_TOO_MUCH = "not for an anonymised dump"


@dataclass(slots=True)
class DumpWriter:
    """Objects on their way into a dump."""

    stream: BinaryIO
    hiding: Anonymiser | None = None
    unseen: list[Unseen] = field(default_factory=list)
    problems: list[LeftOut] = field(default_factory=list)
    kinds: tuple[str, ...] = ()
    server_version: str = ""
    taken_at: str | None = None
    count: int = 0

    def take_all(self, objects: Iterable[KubeObject]) -> None:
        """Write these objects, without what decides nothing."""
        for obj in objects:
            scrub(obj)
            if self.hiding is not None:
                self.hiding(obj)
            self.stream.write((b",\n" if self.count else _HEAD + b"\n") + encode(obj))
            self.count += 1

    def take_problems(self, problems: Sequence[ObjectError]) -> None:
        """Keep what was left out, and why."""
        for one in problems:
            kind = one.identity.partition(" ")[0]
            told = LeftOut(one.identity, one.path, one.problem)
            self.problems.append(told if self.hiding is None else LeftOut(f"{kind} (unnamed)"))

    def end(self) -> None:
        """Close the list, and say what the dump lacks."""
        version = self.server_version
        notes = DumpNotes(
            unseen=tuple(map(self._hidden, self.unseen)),
            left_out=tuple(self.problems),
            kinds=self.kinds,
            server_version=release_of(version) if self.hiding else version,
            taken_at=self.taken_at,
        )
        self.stream.write((b"\n]" if self.count else _HEAD + b"]") + b',"bayplan":')
        self.stream.write(msgspec.json.encode(notes) + b"}\n")

    def _hidden(self, one: Unseen) -> Unseen:
        if self.hiding is None:
            return one
        why = one.why if one.why == TELLS_TOO_MUCH else ""  # the server's words name the user
        return replace(one, why=why, but_in=self.hiding.names.name(one.but_in))


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Where a dump is to be written; a file comes to be only when all is written."""
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        there = Path(path)
        is_special = there.exists() and not there.is_file()
        target = there if is_special else there.resolve()
    except (OSError, ValueError, RuntimeError) as error:  # ValueError: a NUL; RuntimeError: a loop
        raise _unwritable(path, error) from None
    try:
        yield from _into(target) if is_special else _in_place_of(target)
    except OSError as error:
        raise _unwritable(path, error) from None


def _into(target: Path) -> Iterator[BinaryIO]:
    """A device or a pipe, which must stay what it is."""
    with target.open("wb") as plain:
        yield from _compressed(plain, target)


def _in_place_of(target: Path) -> Iterator[BinaryIO]:
    # Of its owner alone from the first byte on.
    number, name = tempfile.mkstemp(prefix=f".{target.name[:100]}.", dir=target.parent)
    try:
        with os.fdopen(number, "wb") as plain:
            yield from _compressed(plain, target)
            plain.flush()
            os.fsync(plain.fileno())
        Path(name).replace(target)
    finally:
        Path(name).unlink(missing_ok=True)


def _compressed(plain: BinaryIO, target: Path) -> Iterator[BinaryIO]:
    if target.suffix != ".gz":
        yield plain
        return
    # Without the file's name and its time: the same cluster gives the same bytes.
    with gzip.GzipFile("", "wb", _COMPRESSION, plain, mtime=0) as stream:
        yield cast("BinaryIO", stream)


def _unwritable(path: str, error: Exception) -> InputError:
    said = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(f"--to {path[:200]}: {said}")
