"""From msgspec's error message to the field and the value that it is about."""

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
    """The path of the field, such as `spec.containers[0].image`, and the value found there.

    msgspec writes `[...]` for any entry of a map; the entry meant is the first of the type it
    complains of, or that is not what it should be, and failing that the step stays as it is.
    Of a map's key that is wrong, the value is the key.
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
        found = next((one for one in found if wanted and not re.search(wanted, str(one))), found)
    return path.removeprefix("."), found


def pattern(message: str) -> str:
    """The pattern that a text does not match, if that is what is wrong."""
    found = _REGEX.search(message)
    return str(ast.literal_eval(found["text"])) if found else ""


def reason(message: str) -> str:
    """What is wrong, without the place."""
    said = _PLACE.sub("", message).replace("`", "")
    return said[:1].lower() + said[1:]


def _key(step: re.Match[str], found: object, message: str) -> str | int:
    if step["field"] is not None:
        return step["field"]
    if step["index"] is not None:
        return int(step["index"])
    entries = found.items() if isinstance(found, dict) else ()
    return next((str(key)[:80] for key, value in entries if _is_meant(value, message)), "[...]")


def _is_meant(value: object, message: str) -> bool:
    """Whether a message can be about a value."""
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
