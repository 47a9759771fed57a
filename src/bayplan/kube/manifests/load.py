"""Loading from files, directories and standard input, plain or compressed."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import yaml

from bayplan.base.garbage import paused_collector
from bayplan.base.values import JsonObject
from bayplan.base.yaml_values import YamlError
from bayplan.kube.manifests.collector import Collector, LoadResult, Progress
from bayplan.kube.manifests.documents import take_json, take_yaml, yaml_documents

MAX_BYTES = 4 << 30
"""The maximum size of a source; the largest clusters are below half of it."""
_GZIP_ALLOWANCE = 64 << 20
_GZIP_RATIO = 200
_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 8 << 20

_JSON = frozenset({".json", ".ndjson", ".jsonl"})
_YAML = frozenset({".yaml", ".yml"})


class LoadError(ValueError):
    """A source that cannot be read at all."""


class InputSource(NamedTuple):
    """Bytes, and their name in messages."""

    name: str
    data: bytes


def open_sources(
    source: str | Path | bytes, stdin: BinaryIO | None = None
) -> Iterator[InputSource | LoadError]:
    """Yield every file of a source; for an unreadable one in a directory, yield the error."""
    if isinstance(source, bytes):
        yield _unpacked("input", source)
    elif str(source) == "-":
        stream = sys.stdin.buffer if stdin is None else stdin
        yield _unpacked("standard input", _bounded("standard input", stream, MAX_BYTES))
    elif Path(source).is_dir():
        yield from map(_file_or_error, _files_under(Path(source)))
    else:
        yield _file(Path(source))


def _file_or_error(path: Path) -> InputSource | LoadError:
    try:
        return _file(path)
    except LoadError as error:
        return error


def _file(path: Path) -> InputSource:
    try:
        with path.open("rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            # A plain file is read in one piece, so that it is not in memory twice.
            fits_at_once = 0 < size <= MAX_BYTES
            data = stream.read(size) if fits_at_once else _bounded(str(path), stream, MAX_BYTES)
    except LoadError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise LoadError(f"{str(path)[:200]}: {reason}") from None
    return _unpacked(str(path), data)


def _files_under(root: Path) -> Iterator[Path]:
    """Yield JSON and YAML files in sorted order, without hidden ones and symlinked folders."""
    for folder, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(folder, name)
            if not name.startswith(".") and _is_wanted(name) and path.is_file():
                yield path


def _is_wanted(name: str) -> bool:
    return Path(name.lower().removesuffix(".gz")).suffix in _JSON | _YAML


def _unpacked(name: str, data: bytes) -> InputSource:
    if not data.startswith(_GZIP_MAGIC):
        return InputSource(name, data)
    limit = min(MAX_BYTES, _GZIP_ALLOWANCE + _GZIP_RATIO * len(data))
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            return InputSource(name, _bounded(name, stream, limit))
    except (OSError, EOFError, zlib.error) as error:
        raise LoadError(f"{name}: not readable as gzip: {error}") from None


def _bounded(name: str, stream: BinaryIO | gzip.GzipFile, limit: int) -> bytes:
    """Read a stream; raise LoadError if it has more bytes than the limit."""
    buffer = bytearray()
    while piece := stream.read(_CHUNK):
        if len(buffer) + len(piece) > limit:
            raise LoadError(f"{name}: more than {limit >> 20} MiB")
        buffer += piece
    return bytes(buffer)


def load(
    source: str | Path | bytes,
    *,
    progress: Progress | None = None,
    stdin: BinaryIO | None = None,
    events: bool = False,
) -> LoadResult:
    """Load all objects of a source, and events if requested.

    Raise LoadError only if the source cannot be opened.
    """
    collector = Collector(progress, events=events)
    with paused_collector():
        for opened in open_sources(source, stdin):
            if isinstance(opened, LoadError):
                collector.source = ""
                collector.report_text(str(opened), "skipped")
            else:
                collector.source = opened.name
                _take(collector, opened.data.removeprefix(codecs.BOM_UTF8))
    return collector.loaded


def plain_documents(source: str) -> list[tuple[str, JsonObject]]:
    """Return the documents of a source as plain values, each with its place.

    Raise LoadError if one of them is not an object.
    """
    found: list[tuple[str, JsonObject]] = []
    for opened in open_sources(source):
        if isinstance(opened, LoadError):
            raise opened
        try:
            documents = yaml_documents(opened.data.removeprefix(codecs.BOM_UTF8))
        except (YamlError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
            reason = " ".join(str(error).split())[:300]
            raise LoadError(f"{opened.name}: not YAML: {reason}") from None
        for line, _, value in documents:
            place = f"{opened.name}: document at line {line + 1}"
            if not isinstance(value, dict):
                raise LoadError(f"{place}: not an object")
            found.append((place, value))
    return found


def _take(collector: Collector, data: bytes) -> None:
    start = data[:4096].lstrip()[:1]
    if start not in {b"{", b"["} or not take_json(collector, data):
        take_yaml(collector, data)
