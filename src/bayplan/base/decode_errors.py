"""Find the field and the value that an error message of msgspec is about."""

from __future__ import annotations

import ast
import re

_PLACE = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
_GOT = re.compile(r"got `(?P<type>\w+)`")
_LEAST = re.compile(r"Expected `(?:int|float)` >= (?P<least>-?\d+)")
_REGEX = re.compile(r"matching regex (?P<text>'.*'|\".*\")(?: - at |$)", re.DOTALL)
_STEP = re.compile(r"\.(?P<field>[^.\[\]]+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_JSON_NAMES = {bool: "bool", int: "int", float: "float", str: "str", list: "array", dict: "object"}


def locate(plain: object, message: str) -> tuple[str, object]:
    """Return the path of the field, such as `spec.containers[0].image`, and its value.

    msgspec writes `[...]` for any entry of a map. The entry meant is the first one of the type that
    the message names, or that does not match; if there is none, the path keeps `[...]`. If a key
    of a map is wrong, the value returned is the key.
    """
    place = _PLACE.search(message)
    if place is None:
        return "", None
    wanted = pattern(message)
    path, found = "", plain
    for step in _STEP.finditer(place["path"]):
        key = _key(step, found, message)
        path += f"[{key}]" if isinstance(key, int) else f".{key}"
        found = _child(found, key)
    if place["key"] and isinstance(found, dict):
        found = next((key for key in found if wanted and not re.search(wanted, str(key))), found)
    return path.removeprefix("."), found


def pattern(message: str) -> str:
    """Return the pattern that a text does not match; empty for other errors."""
    found = _REGEX.search(message)
    return str(ast.literal_eval(found["text"])) if found else ""


def reason(message: str) -> str:
    """Return what is wrong, without the path."""
    text = _PLACE.sub("", message).replace("`", "")
    return text[:1].lower() + text[1:]


def _key(step: re.Match[str], found: object, message: str) -> str | int:
    if step["field"] is not None:
        return step["field"]
    if step["index"] is not None:
        return int(step["index"])
    entries = found.items() if isinstance(found, dict) else ()
    return next((str(key)[:80] for key, value in entries if _is_meant(value, message)), "[...]")


def _is_meant(value: object, message: str) -> bool:
    """Return whether a message can be about a value."""
    if wanted := pattern(message):
        return isinstance(value, str) and not re.search(wanted, value)
    if least := _LEAST.search(message):
        return isinstance(value, int | float) and value < int(least["least"])
    got = _GOT.search(message)
    return got is not None and _JSON_NAMES.get(type(value), "null") == got["type"]


def _child(found: object, key: str | int) -> object:
    if isinstance(found, dict):
        return found.get(key)
    if isinstance(found, list) and isinstance(key, int) and key < len(found):
        return found[key]
    return None
