"""JSON patch (RFC 6902), and the JSON pointers (RFC 6901) that it is written with.

Where Kubernetes is more lenient than the standard, so is this: an index may count from the end, a
key of an object need not be there to be replaced, and a value that is not given is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode

Container = JsonObject | list[JsonValue]
MOST_OPERATIONS = 10_000
_MOST_COPIED = 3 * 1024 * 1024
_INDEX = re.compile(r"[+-]?[0-9]{1,18}\Z")


class PatchError(Exception):
    """A patch that cannot be carried out on this document."""


def apply_json_patch(document: Container, operations: JsonValue) -> JsonValue:
    """The document after all operations; it may be changed in place."""
    if not isinstance(operations, list) or len(operations) > MOST_OPERATIONS:
        raise PatchError(f"a JSON patch is a list of at most {MOST_OPERATIONS} operations")
    copied = 0
    for operation in operations:
        name = operation.get("op") if isinstance(operation, dict) else None
        carry_out = _OPERATIONS.get(name) if isinstance(name, str) else None
        if carry_out is None:
            raise PatchError(f"Unexpected kind: {name}")
        if name == "copy":
            copied += len(encode(_get(*_find(document, operation.get("from")))))
        if copied > _MOST_COPIED:
            raise PatchError("the accumulated size of what is copied exceeds the limit")
        document = carry_out(document, operation)
    return document


def _find(document: Container, path: JsonValue) -> tuple[Container, str]:
    """The container of what a pointer points at, and its key there."""
    if not isinstance(path, str) or "/" not in path:
        raise PatchError(f"doc is missing path: {path!r}")
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    for step in steps[:-1]:
        inner = _get(document, step)
        if not isinstance(inner, dict | list):
            raise PatchError(f"doc is missing path: {path!r}")
        document = inner
    return document, steps[-1]


def _get(container: Container, key: str) -> JsonValue:
    if isinstance(container, dict):
        return container.get(key)
    return container[_index(key, len(container))]


def _index(key: str, length: int) -> int:
    """A key of a list as an index below `length`; negative ones count from the end."""
    if not _INDEX.match(key):
        raise PatchError(f"{key!r} is not an index")
    index = int(key)
    if not -length <= index < length:
        raise PatchError(f"Unable to access invalid index: {index}")
    return index + length if index < 0 else index


def _insert(container: Container, key: str, value: JsonValue) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _drop(container: Container, key: str) -> None:
    if isinstance(container, list):
        del container[_index(key, len(container))]
    elif key in container:
        del container[key]
    else:
        raise PatchError(f"Unable to remove nonexistent key: {key}")


def _add(document: Container, operation: JsonObject) -> Container:
    container, key = _find(document, operation.get("path"))
    _insert(container, key, clone(operation.get("value")))
    return document


def _remove(document: Container, operation: JsonObject) -> Container:
    _drop(*_find(document, operation.get("path")))
    return document


def _replace(document: Container, operation: JsonObject) -> Container:
    value = clone(operation.get("value"))
    if operation.get("path") == "":
        if not isinstance(value, dict | list):
            raise PatchError("replace operation value must be object or array")
        return value
    container, key = _find(document, operation.get("path"))
    if isinstance(container, dict):
        container[key] = value
    else:
        container[_index(key, len(container))] = value
    return document


def _move(document: Container, operation: JsonObject) -> Container:
    container, key = _find(document, operation.get("from"))
    value = _get(container, key)
    _drop(container, key)
    _insert(*_find(document, operation.get("path")), value)
    return document


def _copy(document: Container, operation: JsonObject) -> Container:
    value = clone(_get(*_find(document, operation.get("from"))))
    _insert(*_find(document, operation.get("path")), value)
    return document


def _test(document: Container, operation: JsonObject) -> Container:
    path = operation.get("path")
    found = document if path == "" else _get(*_find(document, path))
    if found != operation.get("value"):
        raise PatchError(f"testing value {path} failed: test failed")
    return document


_OPERATIONS: dict[str, Callable[[Container, JsonObject], Container]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
