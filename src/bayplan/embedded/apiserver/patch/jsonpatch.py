"""JSON patch (RFC 6902), and the JSON pointers (RFC 6901) that it is written with."""

from __future__ import annotations

from collections.abc import Callable

from bayplan.embedded.apiserver.errors import bad_request
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone

_MOST_OPERATIONS = 10_000


class PatchError(Exception):
    """A patch that cannot be carried out on this document."""


def apply_json_patch(document: JsonValue, operations: JsonValue) -> JsonValue:
    """The document after all operations; it may be changed in place."""
    if not isinstance(operations, list):
        raise bad_request("error decoding patch: a JSON patch is a list of operations")
    if len(operations) > _MOST_OPERATIONS:
        raise PatchError(f"a JSON patch may have at most {_MOST_OPERATIONS} operations")
    for operation in operations:
        if not isinstance(operation, dict):
            raise PatchError("each operation of a JSON patch is an object")
        document = _apply(document, operation)
    return document


def _apply(document: JsonValue, operation: JsonObject) -> JsonValue:
    name = operation.get("op")
    carry_out = _OPERATIONS.get(name) if isinstance(name, str) else None
    if carry_out is None:
        raise PatchError(f"unknown operation {name!r}")
    return carry_out(document, operation)


def parse_pointer(text: JsonValue) -> list[str]:
    """A pointer's steps."""
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def list_index(step: str, length: int, what: str) -> int:
    """A step into a list as an index below `length`."""
    if not (step.isascii() and step.isdigit()) or (len(step) > 1 and step[0] == "0"):
        raise PatchError(f"{what}: {step!r} is not an index")
    index = int(step[:18])
    if index >= length:
        raise PatchError(f"{what}: index {index} is out of bounds")
    return index


def resolve(document: JsonValue, steps: list[str]) -> JsonValue:
    """The value that a pointer points at."""
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[list_index(step, len(document), "path")]
        else:
            raise PatchError(f"path /{'/'.join(steps)} does not exist")
    return document


def _value(operation: JsonObject) -> JsonValue:
    if "value" not in operation:
        raise PatchError(f"{operation['op']} needs a value")
    return operation["value"]


def _put(document: JsonValue, steps: list[str], value: JsonValue) -> JsonValue:
    if not steps:
        return value
    parent, last = resolve(document, steps[:-1]), steps[-1]
    if isinstance(parent, dict):
        parent[last] = value
    elif isinstance(parent, list):
        index = len(parent) if last == "-" else list_index(last, len(parent) + 1, "add")
        parent.insert(index, value)
    else:
        raise PatchError(f"path /{'/'.join(steps)} has no parent that can hold it")
    return document


def _take(document: JsonValue, steps: list[str]) -> JsonValue:
    if not steps:
        raise PatchError("the whole document cannot be removed")
    parent, last = resolve(document, steps[:-1]), steps[-1]
    if isinstance(parent, dict) and last in parent:
        return parent.pop(last)
    if isinstance(parent, list):
        return parent.pop(list_index(last, len(parent), "remove"))
    raise PatchError(f"path /{'/'.join(steps)} does not exist")


def _add(document: JsonValue, operation: JsonObject) -> JsonValue:
    return _put(document, parse_pointer(operation.get("path")), clone(_value(operation)))


def _remove(document: JsonValue, operation: JsonObject) -> JsonValue:
    _take(document, parse_pointer(operation.get("path")))
    return document


def _replace(document: JsonValue, operation: JsonObject) -> JsonValue:
    steps = parse_pointer(operation.get("path"))
    if steps:
        _take(document, steps)
    return _put(document, steps, clone(_value(operation)))


def _move(document: JsonValue, operation: JsonObject) -> JsonValue:
    source, target = parse_pointer(operation.get("from")), parse_pointer(operation.get("path"))
    if target[: len(source)] == source and target != source:
        raise PatchError("a value cannot be moved into itself")
    return _put(document, target, _take(document, source))


def _copy(document: JsonValue, operation: JsonObject) -> JsonValue:
    value = clone(resolve(document, parse_pointer(operation.get("from"))))
    return _put(document, parse_pointer(operation.get("path")), value)


def _test(document: JsonValue, operation: JsonObject) -> JsonValue:
    if resolve(document, parse_pointer(operation.get("path"))) != _value(operation):
        raise PatchError(f"test failed at {operation.get('path')}")
    return document


_OPERATIONS: dict[str, Callable[[JsonValue, JsonObject], JsonValue]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
