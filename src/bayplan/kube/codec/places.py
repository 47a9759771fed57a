"""From msgspec's error message to the field and the value that it is about."""

from __future__ import annotations

import re

_PLACE = re.compile(r" - at `(?:key in )?\$(?P<path>[^`]*)`$")
_GOT = re.compile(r"got `(?P<type>\w+)`")
_STEP = re.compile(r"\.(?P<field>[^.\[\]]+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_JSON_NAMES = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object"}


def locate(plain: object, message: str) -> tuple[str, object]:
    """The path of the field, such as `spec.containers[0].image`, and the value found there.

    msgspec writes `[...]` for any entry of a map; the entry meant is the first of the type it
    complains of, and failing that the step stays as it is.
    """
    place = _PLACE.search(message)
    if place is None:
        return "", None
    got = _GOT.search(message)
    path, found = "", plain
    for step in _STEP.finditer(place["path"]):
        key = _key(step, found, got["type"] if got else "")
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
        found = _child(found, key)
    return path.removeprefix("."), found


def reason(message: str) -> str:
    """What is wrong, without the place."""
    said = _PLACE.sub("", message).replace("`", "")
    return said[:1].lower() + said[1:]


def _key(step: re.Match[str], found: object, got: str) -> str | int:
    if step["field"] is not None:
        return step["field"]
    if step["index"] is not None:
        return int(step["index"])
    entries = found.items() if isinstance(found, dict) else ()
    for key, value in entries:
        if _JSON_NAMES.get(type(value), "null") == got:
            return str(key)[:80]
    return "[...]"


def _child(found: object, key: str | int) -> object:
    if isinstance(found, dict):
        return found.get(key)
    if isinstance(found, list) and isinstance(key, int) and key < len(found):
        return found[key]
    return None
