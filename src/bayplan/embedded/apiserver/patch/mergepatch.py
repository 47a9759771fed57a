"""JSON merge patch (RFC 7386)."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonValue


def apply_merge_patch(document: JsonValue, patch: JsonValue) -> JsonValue:
    """The document with the patch merged in: null removes, objects merge, all else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = document if isinstance(document, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply_merge_patch(merged.get(key), value)
    return merged
