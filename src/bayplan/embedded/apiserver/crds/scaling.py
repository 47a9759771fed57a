"""Whether the replicas of a custom resource that can be scaled are numbers."""

from __future__ import annotations

from bayplan.embedded.apiserver.errors import Cause
from bayplan.embedded.apiserver.jsontypes import JsonObject, JsonValue, encode
from bayplan.embedded.apiserver.validation.causes import bad_value

_MOST = 2**31 - 1
_MAP = "map[string]interface{}"
_GO_TYPES = {
    dict: _MAP,
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    float: "float64",
    int: "int64",
    type(None): "<nil>",
}


def scale_problems(obj: JsonObject, scale: dict[str, str]) -> list[Cause]:
    """What is wrong with the fields that say how many replicas there are and should be."""
    found: list[Cause] = []
    for name in ("specReplicasPath", "statusReplicasPath"):
        found += _replicas_problems(obj, scale.get(name) or "")
    return found


def _replicas_problems(obj: JsonObject, path: str) -> list[Cause]:
    value: JsonValue = obj
    for name in path.lstrip(".").split("."):
        if not isinstance(value, dict):
            return [bad_value(path, 0, _told(path, value, _MAP))]
        if name not in value:
            return []
        value = value[name]
    if type(value) is not int:
        return [bad_value(path, 0, _told(path, value, "int64"))]
    if value < 0:
        return [bad_value(path, value, "should be a non-negative integer")]
    return (
        [bad_value(path, value, f"should be less than or equal to {_MOST}")]
        if value > _MOST
        else []
    )


def _told(path: str, value: JsonValue, wanted: str) -> str:
    shown = value if isinstance(value, str) else encode(value).decode()
    return (
        f"{path} accessor error: {shown} is of the type {_GO_TYPES[type(value)]}, expected {wanted}"
    )
