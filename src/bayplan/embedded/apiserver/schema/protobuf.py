"""Decoding of Kubernetes' protobuf bodies, by the type table.

Go clients send protobuf by default, so a server must read it. It never has to write it, since every
client also reads JSON. The envelope is `k8s\0` and a `runtime.Unknown` with kind and version.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, decode
from bayplan.embedded.apiserver.schema.types import UNIONS, FieldType, ObjectType, require_type

MAGIC = b"k8s\x00"
_MAX_DEPTH = 64
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

WireValue = int | bytes


class WireError(Exception):
    """Bytes that are not a valid message."""


def open_envelope(body: bytes) -> tuple[str, str, bytes]:
    """Return the apiVersion, the kind and the message of an envelope."""
    if not body.startswith(MAGIC):
        raise WireError(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"
        )
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body[len(MAGIC) :]):
        if number == 1:
            names = {n: _text(v) for n, v in _fields(_bytes(value))}
            api_version, kind = names.get(1, ""), names.get(2, "")
        elif number == 2:
            raw = _bytes(value)
    return api_version, kind, raw


def decode_message(data: bytes, type_: ObjectType, depth: int = 0) -> JsonObject:
    """Decode a message as a JSON object."""
    if depth > _MAX_DEPTH:
        raise WireError("messages are nested too deeply")
    by_number = {field.number: field for field in type_.declared}
    obj: JsonObject = {}
    for number, value in _fields(data):
        field = by_number.get(number)
        if field is not None:
            _put(obj, field, value, depth)
    return obj


def _put(obj: JsonObject, field: FieldType, value: WireValue, depth: int) -> None:
    if field.inline:
        obj.update(decode_message(_bytes(value), require_type(field.base), depth + 1))
    elif field.is_map:
        key, item = _pair(field, _bytes(value), depth)
        obj.setdefault(field.name, {})[key] = item
    elif field.is_list:
        obj.setdefault(field.name, []).append(_value(field, value, depth))
    else:
        item = _value(field, value, depth)
        if item is not None and (item != "" or field.number == 0):
            obj[field.name] = item


def _pair(field: FieldType, data: bytes, depth: int) -> tuple[str, JsonValue]:
    parts = dict(_fields(data))
    key = _text(parts.get(1, b""))
    if field.base == "any":
        return key, [_text(item) for _, item in _fields(_bytes(parts.get(2, b"")))]
    return key, _value(field, parts.get(2, b""), depth)


def _value(field: FieldType, value: WireValue, depth: int) -> JsonValue:
    base = field.base
    if base == "string":
        return _text(value)
    if base in ("int32", "int64", "bool"):
        return _integer(base, value)
    if base == "double":
        return struct.unpack("<d", _bytes(value))[0]
    if base == "bytes":
        return base64.b64encode(_bytes(value)).decode()
    if base in _SPECIAL:
        return _SPECIAL[base](_bytes(value))
    if base in UNIONS:
        raise WireError(f"{field.name} cannot be read from protobuf; send JSON")
    return decode_message(_bytes(value), require_type(base), depth + 1)


def _integer(base: str, value: WireValue) -> int | bool:
    if not isinstance(value, int):
        raise WireError("a number was expected")
    if base == "bool":
        return bool(value)
    return value - 2**64 if value >= 2**63 else value


def _quantity(data: bytes) -> str:
    return _text(dict(_fields(data)).get(1, b"")) or "0"


def _time(data: bytes) -> str | None:
    parts = dict(_fields(data))
    seconds = _integer("int64", parts.get(1, 0))
    if not parts:
        return None
    try:
        return (_EPOCH + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError as problem:
        raise WireError("a time is out of range") from problem


def _micro_time(data: bytes) -> str | None:
    whole = _time(data)
    nanos = _integer("int32", dict(_fields(data)).get(2, 0))
    return None if whole is None else f"{whole[:-1]}.{int(nanos) // 1000:06d}Z"


def _int_or_string(data: bytes) -> int | str:
    parts = dict(_fields(data))
    if parts.get(1, 0) == 1:
        return _text(parts.get(3, b""))
    return int(_integer("int64", parts.get(2, 0)))


def _raw(data: bytes) -> JsonValue:
    raw = _bytes(dict(_fields(data)).get(1, b""))
    try:
        return decode(raw) if raw else None
    except (ValueError, RecursionError) as problem:
        raise WireError("an embedded object is not JSON") from problem


_SPECIAL = {
    "Quantity": _quantity,
    "Time": _time,
    "MicroTime": _micro_time,
    "IntOrString": _int_or_string,
    "Raw": _raw,
    "FieldsV1": _raw,
    "any": _raw,
}


def _bytes(value: WireValue) -> bytes:
    if not isinstance(value, bytes):
        raise WireError("bytes were expected")
    return value


def _text(value: WireValue) -> str:
    try:
        return _bytes(value).decode("utf-8")
    except UnicodeDecodeError as problem:
        raise WireError("a string is not UTF-8") from problem


def _fields(data: bytes) -> Iterator[tuple[int, WireValue]]:
    """Yield the fields of a message, in order."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == 0:
            number, position = _varint(data, position)
            yield tag >> 3, number
            continue
        if kind == 2:
            size, position = _varint(data, position)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise WireError(f"wire type {kind} is not known")
        if position + size > end:
            raise WireError("a field is cut off")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while position < len(data) and shift < 70:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), position
        shift += 7
    raise WireError("a number is cut off")
