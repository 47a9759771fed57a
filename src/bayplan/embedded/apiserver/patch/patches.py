"""A patch as a client sent it, whatever its type, and how it is carried out."""

from __future__ import annotations

from typing import NamedTuple

from bayplan.embedded.apiserver.errors import ApiError, bad_request, unsupported_media_type
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue
from bayplan.embedded.apiserver.kinds.model import Kind
from bayplan.embedded.apiserver.patch.jsonpatch import PatchError, apply_json_patch
from bayplan.embedded.apiserver.patch.strategic import apply_strategic_patch
from bayplan.embedded.apiserver.schema.roots import root_type

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


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
            message = f"the server rejected our request due to an error in our request: {problem}"
            raise ApiError(422, "Invalid", message, {}) from problem
        except RecursionError as problem:
            raise bad_request("the patch is nested too deeply") from problem
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise bad_request("the patch does not leave an object with metadata")
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
