"""Writes a dump: a v1 List, object by object; the file appears only when it is complete."""

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
from bayplan.kube.manifests import DumpMetadata, OmittedObject, UnseenKind
from bayplan.kube.meta import KubeObject
from bayplan.recordings.privacy import Anonymiser, release_of, scrub

_HEAD = b'{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":['
_COMPRESSION = 6
EXCLUDED_FROM_ANONYMISED = "not for an anonymised dump"


@dataclass(slots=True)
class DumpWriter:
    """Writes objects and notes into a dump."""

    stream: BinaryIO
    anonymiser: Anonymiser | None = None
    unseen: list[UnseenKind] = field(default_factory=list)
    problems: list[OmittedObject] = field(default_factory=list)
    kinds: tuple[str, ...] = ()
    server_version: str = ""
    taken_at: str | None = None
    count: int = 0

    def write_objects(self, objects: Iterable[KubeObject]) -> None:
        """Write objects, without fields that no decision reads."""
        for obj in objects:
            scrub(obj)
            if self.anonymiser is not None:
                self.anonymiser(obj)
            self.stream.write((b",\n" if self.count else _HEAD + b"\n") + encode(obj))
            self.count += 1

    def record_problems(self, problems: Sequence[ObjectError]) -> None:
        """Note the objects that were left out, and why."""
        for one in problems:
            kind = one.identity.partition(" ")[0]
            note = OmittedObject(one.identity, one.path, one.problem)
            self.problems.append(
                note if self.anonymiser is None else OmittedObject(f"{kind} (unnamed)")
            )

    def end(self) -> None:
        """Close the list, and write the notes on what the dump lacks."""
        version = self.server_version
        notes = DumpMetadata(
            unseen=tuple(map(self._anonymised, self.unseen)),
            left_out=tuple(self.problems),
            kinds=self.kinds,
            server_version=release_of(version) if self.anonymiser else version,
            taken_at=self.taken_at,
        )
        self.stream.write((b"\n]" if self.count else _HEAD + b"]") + b',"bayplan":')
        self.stream.write(msgspec.json.encode(notes) + b"}\n")

    def _anonymised(self, one: UnseenKind) -> UnseenKind:
        if self.anonymiser is None:
            return one
        # The server's message names the user.
        reason = one.reason if one.reason == EXCLUDED_FROM_ANONYMISED else ""
        namespace = self.anonymiser.names.name(one.readable_namespace)
        return replace(one, reason=reason, readable_namespace=namespace)


@contextmanager
def open_dump(path: str) -> Iterator[BinaryIO]:
    """Open the output of a dump; a file appears only when all is written."""
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
        yield from _appending(target) if is_special else _replacing(target)
    except OSError as error:
        raise _unwritable(path, error) from None


def _appending(target: Path) -> Iterator[BinaryIO]:
    """Write to a device or a pipe, which must not be replaced."""
    with target.open("wb") as plain:
        yield from _compressed(plain, target)


def _replacing(target: Path) -> Iterator[BinaryIO]:
    # Readable only by its owner from the first byte on.
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
    # Without the file's name and time: the same cluster gives the same bytes.
    with gzip.GzipFile("", "wb", _COMPRESSION, plain, mtime=0) as stream:
        yield cast("BinaryIO", stream)


def _unwritable(path: str, error: Exception) -> InputError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    return InputError(f"--to {path[:200]}: {reason}")
