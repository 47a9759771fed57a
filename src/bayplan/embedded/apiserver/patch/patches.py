"""A patch as a client sent it, whatever its type, and how it is carried out."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.errors import ApiError, invalid, unsupported_media_type
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, encode
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.patch.jsonpatch import PatchError, apply_json_patch
from bayplan.embedded.apiserver.patch.strategic import apply_strategic_patch
from bayplan.embedded.apiserver.schema.roots import root_type
from bayplan.embedded.apiserver.schema.types import FieldType, ObjectType
from bayplan.embedded.apiserver.schema.unmarshal import (
    TYPE_META,
    described,
    read_exactly,
    strict_problems,
)
from bayplan.embedded.apiserver.validation.causes import bad_value

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


def accepted(kind: Kind) -> tuple[str, ...]:
    """The patch types that a kind's objects understand."""
    if kind.custom is not None:
        return (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
    return (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Patch(NamedTuple):
    """A patch and its media type."""

    media_type: str
    content: JsonValue
    kind: Kind

    def on(self, obj: JsonObject) -> JsonObject:
        """The object after the patch; the given object may be changed."""
        try:
            patched = self._apply(obj)
        except PatchError as problem:
            raise ApiError(422, "Invalid", _REJECTED, {}) from problem
        except RecursionError as problem:
            raise _no_object("{}", "exceeded max depth") from problem
        if not isinstance(patched, dict):
            told = f"json: cannot unmarshal {described(patched)} into Go value of type {TYPE_META}"
            told = f"couldn't get version/kind; json parse error: {told}"
            raise _no_object(encode(patched).decode(), told)
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


def _no_object(shown: str, why: str) -> ApiError:
    return invalid("", "", "", [bad_value("patch", shown, why)])


def shape_problem(media_type: str, content: JsonValue) -> str:
    """What Go's decoder says of a patch that is not of the form that its type has."""
    if media_type != JSON_PATCH:
        if isinstance(content, dict | None):
            return ""
        told = f"json: cannot unmarshal {described(content)} into Go value of type"
        return f"{told} map[string]interface {{}}"
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
        told = f"json: cannot unmarshal {described(operation)} into Go value of type"
        return f"{told} handlers.jsonPatchOp"
    for name in operation.keys() & _TEXTS:
        if not isinstance(operation[name], str | None):
            told = f"json: cannot unmarshal {described(operation[name])} into Go struct field"
            return f"{told} jsonPatchOp.{name} of type string"
    return ""


def repeated(media_type: str, body: bytes, content: JsonValue) -> tuple[str, ...]:
    """What a patch says twice or names in vain."""
    if media_type != JSON_PATCH:
        if body.count(b'":') == encode(content).count(b'":'):
            return ()
        return tuple(strict_problems(read_exactly(body), None))
    exact = read_exactly(body)
    return tuple(f"json patch {told}" for told in strict_problems(exact, _OPERATION))


def apply_merge_patch(document: JsonValue, patch: JsonValue) -> JsonValue:
    """The document after a merge patch (RFC 7386): null removes, objects merge, others replace."""
    if not isinstance(patch, dict):
        return patch
    merged = document if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged
