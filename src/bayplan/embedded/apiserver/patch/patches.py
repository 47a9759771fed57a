"""Patches of all types, and JSON patch.

Like Kubernetes, JSON patch is more lenient than the standard: an index may count from the end, a
key need not exist to be replaced, and a missing value is null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from bayplan.embedded.apiserver.errors import StatusError, invalid, unsupported_media_type
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, clone, encode
from bayplan.embedded.apiserver.kinds.model import ServedKind
from bayplan.embedded.apiserver.patch.strategic import apply_strategic_patch
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType, root_type
from bayplan.embedded.apiserver.schema.unmarshal import (
    TYPE_META,
    described,
    read_exactly,
    strict_problems,
)
from bayplan.embedded.apiserver.validation.causes import bad_value

Container = JsonObject | list[JsonValue]
MAX_OPERATIONS = 10_000
_MAX_COPIED = 3 * 1024 * 1024
_INDEX = re.compile(r"[+-]?[0-9]{1,18}\Z")


class PatchError(Exception):
    """A patch that cannot be applied to this document."""


def apply_json_patch(document: Container, operations: JsonValue) -> JsonValue:
    """Return the document after all operations; it may be changed in place."""
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise PatchError(f"a JSON patch is a list of at most {MAX_OPERATIONS} operations")
    copied = 0
    for operation in operations:
        name = operation.get("op") if isinstance(operation, dict) else None
        carry_out = _OPERATIONS.get(name) if isinstance(name, str) else None
        if carry_out is None:
            raise PatchError(f"Unexpected kind: {name}")
        if name == "copy":
            copied += len(encode(_get(*_find(document, operation.get("from")))))
        if copied > _MAX_COPIED:
            raise PatchError("the accumulated size of what is copied exceeds the limit")
        document = carry_out(document, operation)
    return document


def _find(document: Container, path: JsonValue) -> tuple[Container, str]:
    """Return the container of a pointer's target, and the key in it."""
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
    """Return a list index below `length`; negative ones count from the end."""
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


JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_REJECTED = "the server rejected our request due to an error in our request"
_TEXTS = frozenset(("op", "path", "from"))
_OPERATION = ObjectType(
    "handlers.jsonPatchOp",
    fields={
        **{name: FieldType(0, name, "string") for name in _TEXTS},
        "value": FieldType(0, "value", "any"),
    },
)


def accepted(kind: ServedKind) -> tuple[str, ...]:
    """Return the patch types that a kind supports."""
    if kind.custom is not None:
        return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class PatchRequest(NamedTuple):
    """A patch and its media type."""

    media_type: str
    content: JsonValue
    kind: ServedKind

    def on(self, obj: JsonObject) -> JsonObject:
        """Return the patched object; the given object may be changed."""
        try:
            patched = self._apply(obj)
        except PatchError as problem:
            raise StatusError(422, "Invalid", _REJECTED, {}) from problem
        except RecursionError as problem:
            raise _no_object("{}", "exceeded max depth") from problem
        if not isinstance(patched, dict):
            message = (
                f"json: cannot unmarshal {described(patched)} into Go value of type {TYPE_META}"
            )
            message = f"couldn't get version/kind; json parse error: {message}"
            raise _no_object(encode(patched).decode(), message)
        return patched

    def _apply(self, obj: JsonObject) -> JsonValue:
        if self.media_type == JSON_PATCH:
            return apply_json_patch(obj, self.content)
        if not isinstance(self.content, dict):
            raise PatchError("the patch must be a JSON object")
        if self.media_type == STRATEGIC_PATCH:
            type_ = root_type(self.kind.group, self.kind.kind)
            return apply_strategic_patch(obj, self.content, type_)
        if self.media_type == MERGE_PATCH:
            return apply_merge_patch(obj, self.content)
        raise unsupported_media_type(accepted(self.kind))


def _no_object(shown: str, detail: str) -> StatusError:
    return invalid("", "", "", [bad_value("patch", shown, detail)])


def patch_type_problem(media_type: str, content: JsonValue) -> str:
    """Return the decode error of a patch that does not have its type's form."""
    if media_type != JSON_PATCH:
        if isinstance(content, dict | None):
            return ""
        message = f"json: cannot unmarshal {described(content)} into Go value of type"
        return f"{message} map[string]interface {{}}"
    if not isinstance(content, list):
        name = "[]handlers.jsonPatchOp"
        return (
            ""
            if content is None
            else f"json: cannot unmarshal {described(content)} into Go value of type {name}"
        )
    return next((found for one in content if (found := _operation_problem(one))), "")


def _operation_problem(operation: JsonValue) -> str:
    if operation is None:
        return ""
    if not isinstance(operation, dict):
        message = f"json: cannot unmarshal {described(operation)} into Go value of type"
        return f"{message} handlers.jsonPatchOp"
    for name in operation.keys() & _TEXTS:
        if not isinstance(operation[name], str | None):
            message = f"json: cannot unmarshal {described(operation[name])} into Go struct field"
            return f"{message} jsonPatchOp.{name} of type string"
    return ""


def repeated(media_type: str, body: bytes, content: JsonValue) -> tuple[str, ...]:
    """Return duplicate and unknown fields of a patch."""
    if media_type != JSON_PATCH:
        if body.count(b'":') == encode(content).count(b'":'):
            return ()
        return tuple(strict_problems(read_exactly(body), None))
    exact = read_exactly(body)
    return tuple(f"json patch {found}" for found in strict_problems(exact, _OPERATION))


def apply_merge_patch(document: JsonValue, patch: JsonValue) -> JsonValue:
    """Return the document after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    merged = document if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged
