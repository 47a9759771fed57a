"""Plain values as decoded from JSON and YAML, and how messages show them."""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject = dict[str, JsonValue]
SHOWN_CHARACTERS = 60
"""Characters of a text that a message shows."""


def shorten(shown: object) -> str:
    """Return any value in a few printable characters."""
    if shown is None:
        return ""
    if isinstance(shown, str):
        text = repr(shown[:SHOWN_CHARACTERS])
        return f"{text}…" if len(shown) > SHOWN_CHARACTERS else text
    if isinstance(shown, bool | float):
        return repr(shown)
    if isinstance(shown, int):
        return repr(shown) if shown.bit_length() < 256 else "a huge integer"
    return f"a {type(shown).__name__}"


def printable(text: str) -> str:
    """Return the text on one line, without control characters."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
