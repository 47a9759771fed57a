"""Plain values from one YAML document, with scalars read as Kubernetes' own tools read them.

That is YAML 1.1 with the exceptions that matter in practice: `1e3` is a number, times of day are
not numbers in base 60, and dates stay text. A lone `y` or `n` stays text too: as a boolean it would
break names, and no field needs it as one.

Building from events rather than with PyYAML's constructor keeps hostile documents cheap: nothing
recurses, depth is bounded, and the values that aliases repeat are counted, so that neither an alias
bomb nor an anchor that contains itself is accepted. A duplicate key is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

import yaml

from bayplan.base.values import JsonValue

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _true, _false in (("true", "false"), ("yes", "no"), ("on", "off")):
    _WORDS |= {_true: True, _true.capitalize(): True, _true.upper(): True}
    _WORDS |= {_false: False, _false.capitalize(): False, _false.upper(): False}

_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 64
_LEGACY_OCTAL = re.compile(r"\A([-+]?)0([0-7]+)\Z")


def plain_scalar(text: str) -> Scalar:
    """Return the value of an unquoted scalar."""
    if len(text) > _LONGEST_NUMBER:
        return text
    return _resolve(text)


def key_text(value: Scalar) -> str | None:
    """Return a scalar as the key of a JSON object; None if it cannot be one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return value


@lru_cache(1 << 14)
def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return int(_LEGACY_OCTAL.sub(r"\g<1>0o\2", digits), 0)
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return number if math.isfinite(number) else text
    return text


MAX_DEPTH = 100
MAX_REPEATED = 1_000_000
"""The maximum number of values that the aliases of one document may repeat."""

_TAG = "tag:yaml.org,2002:"
_MERGE = "<<"
Event: TypeAlias = yaml.events.Event


class YamlError(ValueError):
    """A document that is not plain data, with the line of the error."""

    def __init__(self, event: Event, problem: str) -> None:
        self.line: int = event.start_mark.line + 1 if event.start_mark else 0
        super().__init__(problem)


class _Frame:
    """A mapping or a sequence that is being filled."""

    __slots__ = ("anchor", "filled", "key", "merged", "merging", "size")

    def __init__(self, filled: list[JsonValue] | dict[str, JsonValue], anchor: str | None) -> None:
        self.filled = filled
        self.anchor = anchor
        self.key: str | None = None
        self.merged: list[JsonValue] = []
        self.merging = False
        self.size = 1

    @property
    def wants_key(self) -> bool:
        return isinstance(self.filled, dict) and self.key is None and not self.merging


class _Builder:
    """Builds the value of a document from its events; `result` has it at the end."""

    def __init__(self) -> None:
        self.result: JsonValue = None
        self._stack: list[_Frame] = []
        self._anchored: dict[str, tuple[JsonValue, int]] = {}
        self._repeated = 0

    def feed(self, event: Event) -> None:
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open(event, {})
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open(event, [])
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            self._close(event)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event)

    def _scalar(self, event: yaml.ScalarEvent) -> None:
        value = _scalar_value(event)
        if event.anchor is not None:
            self._anchored[event.anchor] = (value, 1)
        merges = value == _MERGE and event.style in {"", None}
        self._put(event, value, 1, merges=merges)

    def _open(
        self,
        event: yaml.MappingStartEvent | yaml.SequenceStartEvent,
        filled: list[JsonValue] | dict[str, JsonValue],
    ) -> None:
        if len(self._stack) >= MAX_DEPTH:
            raise YamlError(event, f"nested deeper than {MAX_DEPTH}")
        if event.tag and event.tag not in {f"{_TAG}map", f"{_TAG}seq", "!"}:
            raise YamlError(event, f"tag {event.tag[:80]!r} is not plain data")
        if self._stack and self._stack[-1].wants_key:
            raise YamlError(event, "a key must be a scalar")
        if event.anchor is not None:
            self._anchored.pop(event.anchor, None)
        self._stack.append(_Frame(filled, event.anchor))

    def _close(self, event: Event) -> None:
        frame = self._stack.pop()
        for source in frame.merged:
            _merge(event, frame.filled, source)
        if frame.anchor is not None:
            self._anchored[frame.anchor] = (frame.filled, frame.size)
        self._put(event, frame.filled, frame.size)

    def _alias(self, event: yaml.AliasEvent) -> None:
        anchor = event.anchor or ""
        if anchor not in self._anchored:
            raise YamlError(event, f"alias {anchor[:80]!r} has no finished anchor")
        value, size = self._anchored[anchor]
        self._repeated += size
        if self._repeated > MAX_REPEATED:
            raise YamlError(event, f"aliases repeat more than {MAX_REPEATED} values")
        self._put(event, value, size)

    def _put(self, event: Event, value: JsonValue, size: int, *, merges: bool = False) -> None:
        if not self._stack:
            self.result = value
            return
        frame = self._stack[-1]
        frame.size += size
        if isinstance(frame.filled, list):
            frame.filled.append(value)
        elif frame.merging:
            frame.merged.append(value)
            frame.merging = False
        elif frame.key is None and merges:
            frame.merging = True
        elif frame.key is None:
            frame.key = _key(event, value, frame.filled)
        else:
            frame.filled[frame.key] = value
            frame.key = None


def build(events: Iterable[Event]) -> JsonValue:
    """Return the value of the single document in the events; YamlError if it is not plain data."""
    builder = _Builder()
    documents = 0
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise YamlError(event, "more than one document where one was expected")
        builder.feed(event)
    return builder.result


def _key(event: Event, value: JsonValue, filled: dict[str, JsonValue]) -> str:
    key = None if isinstance(value, list | dict) else key_text(value)
    if key is None:
        raise YamlError(event, "a key must be text")
    if key in filled:
        raise YamlError(event, f"duplicate key {key[:80]!r}")
    return key


def _merge(event: Event, filled: list[JsonValue] | dict[str, JsonValue], source: JsonValue) -> None:
    """Add the keys of one or several other mappings that are not present yet."""
    for merged in source if isinstance(source, list) else [source]:
        if not isinstance(merged, dict) or not isinstance(filled, dict):
            raise YamlError(event, "only mappings can be merged with <<")
        for key, value in merged.items():
            filled.setdefault(key, value)


def _scalar_value(event: yaml.ScalarEvent) -> JsonValue:
    text: str = event.value
    tag = event.tag
    if tag is None:
        return plain_scalar(text) if event.implicit[0] else text
    if tag in {f"{_TAG}str", "!"}:
        return text
    value = plain_scalar(text)
    if tag.removeprefix(_TAG) not in _tags_of(value):
        raise YamlError(event, f"{text[:40]!r} does not match its tag {tag[:80]!r}")
    return value


def _tags_of(value: JsonValue) -> set[str]:
    if isinstance(value, bool):
        return {"bool"}
    if isinstance(value, int):
        return {"int", "float"}
    return {"float"} if isinstance(value, float) else {"null"} if value is None else set()
