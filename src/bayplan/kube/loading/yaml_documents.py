"""YAML: documents between `---`, each read by itself so that a broken one spoils no other.

A line that starts with `---` or `...` always ends a document, even inside a block of text, so the
text can be cut there without parsing it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TypeAlias

import yaml

from bayplan.base.values import JsonObject, JsonValue
from bayplan.base.yaml_values import YamlError, build
from bayplan.kube.loading.collector import Collector

_MARKER = re.compile(rb"^(?:---|\.\.\.)(?=[ \t\r\n]|\Z)", re.MULTILINE)
_NOTHING = re.compile(rb"(?:[ \t]*(?:#[^\n]*|%[^\n]*|\.\.\.[ \t\r]*|---[ \t\r]*)?(?:\n|\Z))*+")
Cut: TypeAlias = tuple[int, bytes]


def take_yaml(collector: Collector, data: bytes) -> None:
    """Take all objects in the text."""
    read = 0
    for line, text in _cut(data):
        collector.share = read / len(data)
        read += len(text)
        place = f"document at line {line + 1}"
        try:
            _take(collector, place, _value(text))
        except UnicodeDecodeError as error:
            collector.report_text(place, f"not UTF-8 at byte {error.start}")
        except YamlError as error:
            collector.report_text(f"line {line + error.line}", str(error))
        except yaml.YAMLError as error:
            collector.report_text(place, f"not YAML: {_flat(error)}")
        except (RecursionError, MemoryError):
            collector.report_text(place, "nested too deeply or too large")


def yaml_documents(data: bytes) -> list[tuple[int, bytes, JsonValue]]:
    """The lines before each document, its text and its value.

    YamlError or yaml.YAMLError at the first that is broken.
    """
    return [(line, text, _value(text)) for line, text in _cut(data)]


def _cut(data: bytes) -> Iterator[Cut]:
    """Each document's text with the line it starts at; empty ones not."""
    starts = [0, *(found.start() for found in _MARKER.finditer(data)), len(data)]
    line = 0
    for start, end in itertools.pairwise(starts):
        text = data[start:end]
        if not _NOTHING.fullmatch(text):
            yield line, text
        line += text.count(b"\n")


def _value(text: bytes) -> JsonValue:
    text.decode()  # the parser would guess at other encodings
    return build(yaml.parse(text, Loader=yaml.CSafeLoader))


def _take(collector: Collector, place: str, value: JsonValue) -> None:
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
        collector.report_text(place, f"{len(items) - len(objects)} of its items are no objects")
    return objects


def _flat(error: yaml.YAMLError) -> str:
    return " ".join(str(error).replace(' in "<byte string>",', " at").split())[:200]
