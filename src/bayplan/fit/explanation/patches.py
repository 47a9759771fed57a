"""Patches: what to merge into one object, in plain values, to get another; null takes away.

Only fields that differ are named, and containers go by their names, so that a patch of a pod leaves
alone whatever is not read here (commands, probes, mounts).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bayplan.base.values import JsonObject, JsonValue
from bayplan.kube.meta import Struct

_MERGED_BY: Mapping[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ports": ("containerPort", "protocol"),
}
"""Lists of pods that a strategic patch merges, and by what."""
_MERGED_OTHERWISE = {"topologySpreadConstraints"}
"""Lists that it would merge by less than tells their entries apart."""


def plain(obj: Struct) -> JsonObject:
    """An object, or a part of one, in plain values."""
    found: JsonObject = msgspec.to_builtins(obj)
    return found


def merge_patch(before: JsonObject, after: JsonObject) -> JsonObject:
    """A JSON merge patch from one object to another."""
    patch: JsonObject = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        now = before.get(key)
        if isinstance(now, dict) and isinstance(value, dict):
            patch |= {key: merge_patch(now, value)} if now != value else {}
        elif now != value:
            patch[key] = value
    return patch


def strategic_patch(before: JsonObject, after: JsonObject) -> JsonObject:
    """A strategic merge patch from one pod's spec, or a part of it, to another."""
    patch: JsonObject = dict.fromkeys(before.keys() - after.keys())
    for key, value in after.items():
        now = before.get(key)
        if now == value:
            continue
        if isinstance(now, dict) and isinstance(value, dict):
            patch[key] = strategic_patch(now, value)
        elif key in _MERGED_BY and isinstance(now, list) and isinstance(value, list):
            patch[key] = _entries(now, value, _MERGED_BY[key])
        elif key in _MERGED_OTHERWISE and isinstance(value, list):
            patch[key] = [{"$patch": "replace"}, *value]
        else:
            patch[key] = value
    return patch


def _entries(
    before: list[JsonValue], after: list[JsonValue], keys: tuple[str, ...]
) -> list[JsonValue]:
    """The entries that differ, each with what it goes by."""
    return [
        {**{key: new[key] for key in keys if key in new}, **strategic_patch(old, new)}
        for old, new in zip(before, after, strict=True)
        if isinstance(old, dict) and isinstance(new, dict) and old != new
    ]
