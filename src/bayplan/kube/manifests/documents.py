"""The documents of a file: JSON, one after another or in a list, and YAML, separated by `---`.

Lists are split without decoding their items, so that each item can fail by itself and no item is
in memory twice. Where the text is not valid, reading continues at the next line that begins an
object.

A line that starts with `---` or `...` always ends a document, even inside a block of text, so the
text can be split there without parsing it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TypeAlias

import msgspec
import yaml

from bayplan.base.decode_errors import locate, reason
from bayplan.base.values import JsonObject, JsonValue
from bayplan.base.yaml_values import YamlError, build
from bayplan.kube.codec import ObjectError, read_head
from bayplan.kube.manifests.collector import Collector, DumpMetadata

_SPACE = re.compile(rb"[ \t\r\n]*")
_NEXT_OBJECT = re.compile(rb"\n[ \t]*(?=\{)")
_YAML_MARK = b"\n---"
"""Begins a document in YAML, and never occurs in JSON."""
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")


class _Listing(msgspec.Struct, rename="camel"):
    """A list of objects, or one object, of which only the list fields are read."""

    kind: str = ""
    api_version: str = ""
    items: list[msgspec.Raw] = []
    bayplan: DumpMetadata | None = None


_listing = msgspec.json.Decoder(_Listing).decode
_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_whole = msgspec.json.Decoder(msgspec.Raw).decode


def take_json(collector: Collector, data: bytes) -> bool:
    """Take all objects in the text; return False, with none taken, if it is not JSON."""
    # Large dumps are one list: try that before searching the text for the ends of documents.
    if (sole := _sole_list(data)) is not None:
        collector.take_list(sole.kind, sole.api_version, sole.items)
        collector.take_metadata(sole.bayplan)
        return True
    for number, document in enumerate(_documents(data)):
        if isinstance(document, str):
            if number == 0 and (_YAML_MARK in data or _NEXT_OBJECT.search(data) is None):
                return False
            collector.report_text(f"document {number + 1}", document)
        else:
            _take_json(collector, document)
    return True


def _sole_list(data: bytes) -> _Listing | None:
    try:
        listing = _listing(data)
    except _UNREADABLE:
        return None
    return listing if listing.kind.endswith("List") else None


def _documents(data: bytes) -> Iterator[msgspec.Raw | str]:
    """Yield every JSON value in the text, or the error where there should be one."""
    view, start = memoryview(data), _skip_space(data, 0)
    while start < len(data):
        try:
            document, length = _first(view[start:])
        except _UNREADABLE as error:
            yield f"not JSON at byte {start}: {error}"
            start = _next_object(data, start)
        else:
            yield document
            start = _skip_space(data, start + length)


def _first(text: memoryview) -> tuple[msgspec.Raw, int]:
    """Return the value that the text starts with, and its length."""
    try:
        return _whole(text), len(text)
    except msgspec.DecodeError as error:
        trailing = _TRAILING.search(str(error))
        if trailing is None:
            raise
        length = int(trailing[1]) - 1  # the byte it names is the one after the surplus one
        return _whole(text[:length]), length


def _take_json(collector: Collector, document: msgspec.Raw) -> None:
    try:
        if bytes(memoryview(document)[:1]) == b"[":
            collector.take_all(_array(document))
        elif (listing := _read_listing(document)) is not None:
            collector.take_list(listing.kind, listing.api_version, listing.items)
            collector.take_metadata(listing.bayplan)
        else:
            collector.take(document)
    except _UNREADABLE as error:
        path, _ = locate(None, str(error))
        collector.report_unreadable(ObjectError("document", path, None, reason(str(error))))
    except ObjectError as error:
        collector.report_unreadable(error)


def _read_listing(document: msgspec.Raw) -> _Listing | None:
    """Return the list in a document; None if it is a single object."""
    try:
        listing = _listing(document)
    except msgspec.ValidationError:
        if read_head(document).kind.endswith("List"):
            raise
        return None
    return listing if listing.kind.endswith("List") else None


def _skip_space(data: bytes, start: int) -> int:
    found = _SPACE.match(data, start)
    return found.end() if found else start


def _next_object(data: bytes, start: int) -> int:
    found = _NEXT_OBJECT.search(data, start)
    return found.end() if found else len(data)


_MARKER = re.compile(rb"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING = re.compile(rb"(?:[ \t]*(?:#[^\n]*|%[^\n]*|\.\.\.[ \t\r]*|---[ \t\r]*)?(?:\n|\Z))*+")
DocumentText: TypeAlias = tuple[int, bytes]


def take_yaml(collector: Collector, data: bytes) -> None:
    """Take all objects in the text."""
    read = 0
    for line, text in _split(data):
        collector.share = read / len(data)
        read += len(text)
        place = f"document at line {line + 1}"
        try:
            _take_yaml(collector, place, _value(text))
        except UnicodeDecodeError as error:
            collector.report_text(place, f"not UTF-8 at byte {error.start}")
        except YamlError as error:
            collector.report_text(f"line {line + error.line}", str(error))
        except yaml.YAMLError as error:
            collector.report_text(place, f"not YAML: {_one_line(error)}")
        except (RecursionError, MemoryError):
            collector.report_text(place, "nested too deeply or too large")


def yaml_documents(data: bytes) -> list[tuple[int, bytes, JsonValue]]:
    """Return the line before each document, its text and its value.

    Raise YamlError or yaml.YAMLError for the first that is not valid.
    """
    return [(line, text, _value(text)) for line, text in _split(data)]


def _split(data: bytes) -> Iterator[DocumentText]:
    """Yield the line and the text of each document that is not empty."""
    starts = [0, *(found.start() for found in _MARKER.finditer(data)), len(data)]
    line = 0
    for start, end in itertools.pairwise(starts):
        text = data[start:end]
        if not _NOTHING.fullmatch(text):
            yield line, text
        line += text.count(b"\n")


def _value(text: bytes) -> JsonValue:
    text.decode()  # the parser would guess other encodings
    return build(yaml.parse(text, Loader=yaml.CSafeLoader))


def _take_yaml(collector: Collector, place: str, value: JsonValue) -> None:
    if isinstance(value, list):
        collector.take_all(_objects(collector, place, value))
    elif not isinstance(value, dict):
        collector.report_text(place, "not an object")
    elif not _is_list(value):
        collector.take(value)
    else:
        items = value.get("items")
        if not isinstance(items, list):
            collector.report_text(place, "items is not a list")
            return
        objects = _objects(collector, place, items)
        collector.take_list(str(value.get("kind")), str(value.get("apiVersion", "")), objects)


def _is_list(value: JsonObject) -> bool:
    kind = value.get("kind")
    return isinstance(kind, str) and kind.endswith("List") and "items" in value


def _objects(collector: Collector, place: str, items: list[JsonValue]) -> list[JsonObject]:
    objects = [item for item in items if isinstance(item, dict)]
    if len(objects) < len(items):
        collector.report_text(place, f"{len(items) - len(objects)} of its items are not objects")
    return objects


def _one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).replace(' in "<byte string>",', " at").split())[:200]
