"""Pull records on disk: one small file each, written whole or not at all.

    image_manager/pulling/sha256-<hash of image, or of image,handler>
    image_manager/pulled/sha256-<hash of image ref, or of ref,handler>

The layout and the default handler's file names are the kubelet's. A file that cannot be read is
reported and treated as "there is a record, but it vouches for nobody".
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from bayplan.images.credentials.records import ImagePulledRecord, ImagePullIntent, PullKey
from bayplan.images.runtime.objects import ImageKey

log = logging.getLogger(__name__)

_PREFIX = "sha256-"
_UNFINISHED = ".tmp"
_Record = TypeVar("_Record", ImagePullIntent, ImagePulledRecord)


class UnreadableRecordError(Exception):
    """A record is there, but it cannot be understood."""


class RecordFiles:
    """The pull records of one node."""

    def __init__(self, state_dir: Path) -> None:
        self._pulling = state_dir / "image_manager" / "pulling"
        self._pulled = state_dir / "image_manager" / "pulled"
        for folder in (self._pulling, self._pulled):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def intents(self) -> list[ImagePullIntent]:
        """Every readable intent."""
        return list(_read_all(self._pulling, ImagePullIntent))

    def has_intent(self, key: PullKey) -> bool:
        """Whether a pull of this image had begun."""
        intent = _read(self._pulling / _file_name(key), ImagePullIntent)
        return intent is not None and intent.key == key

    def write_intent(self, key: PullKey) -> None:
        """Note that a pull begins."""
        _write(self._pulling / _file_name(key), ImagePullIntent.of(key))

    def delete_intent(self, key: PullKey) -> None:
        """Note that the pull has ended."""
        (self._pulling / _file_name(key)).unlink(missing_ok=True)

    def pulled_records(self) -> list[ImagePulledRecord]:
        """Every readable pulled record."""
        return list(_read_all(self._pulled, ImagePulledRecord))

    def pulled(self, key: ImageKey) -> ImagePulledRecord | None:
        """The record of an image, or None if there is none."""
        record = _read(self._pulled / _file_name(key), ImagePulledRecord)
        return record if record is not None and record.key == key else None

    def write_pulled(self, record: ImagePulledRecord) -> None:
        """Keep a record, in the place of the image's earlier one."""
        _write(self._pulled / _file_name(record.key), record)

    def delete_pulled(self, key: ImageKey) -> None:
        """Forget an image."""
        (self._pulled / _file_name(key)).unlink(missing_ok=True)

    def counts(self) -> tuple[int, int]:
        """How many intents and how many pulled records there are."""
        return sum(1 for _ in _files(self._pulling)), sum(1 for _ in _files(self._pulled))


def _file_name(key: PullKey | ImageKey) -> str:
    return _PREFIX + hashlib.sha256(str(key).encode()).hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.glob(f"{_PREFIX}*")):
        if path.is_file() and not path.name.endswith(_UNFINISHED):
            yield path


def _read_all(folder: Path, kind: type[_Record]) -> Iterator[_Record]:
    for path in _files(folder):
        try:
            record = _read(path, kind)
        except UnreadableRecordError as error:
            log.warning("passing over a pull record: %s", error)
            continue
        if record is not None:
            yield record


def _read(path: Path, kind: type[_Record]) -> _Record | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableRecordError(f"{path}: {error}") from error


def _write(path: Path, record: ImagePullIntent | ImagePulledRecord) -> None:
    """Write beside, sync, rename: after a crash there is the old file or the new one."""
    unfinished = path.with_name(path.name + _UNFINISHED)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(msgspec.json.encode(record))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(path)
