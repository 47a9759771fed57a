"""JSON pointers (RFC 6901)."""

from __future__ import annotations

from bayplan.embedded.apiserver.jsontypes import JsonValue


class PatchError(Exception):
    """A patch that cannot be carried out on this document."""


def parse_pointer(text: JsonValue) -> list[str]:
    """A pointer's steps."""
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"{text!r} is not a JSON pointer")
    return [step.replace("~1", "/").replace("~0", "~") for step in text.split("/")[1:]]


def list_index(step: str, length: int, what: str) -> int:
    """A step into a list as an index below `length`."""
    if not (step.isascii() and step.isdigit()) or (len(step) > 1 and step[0] == "0"):
        raise PatchError(f"{what}: {step!r} is not an index")
    index = int(step[:18])
    if index >= length:
        raise PatchError(f"{what}: index {index} is out of bounds")
    return index


def resolve(document: JsonValue, steps: list[str]) -> JsonValue:
    """The value that a pointer points at."""
    for step in steps:
        if isinstance(document, dict) and step in document:
            document = document[step]
        elif isinstance(document, list):
            document = document[list_index(step, len(document), "path")]
        else:
            raise PatchError(f"path /{'/'.join(steps)} does not exist")
    return document
