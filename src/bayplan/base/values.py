"""Plain values, as JSON and YAML give them, and how they are shown in messages."""

from __future__ import annotations

from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
JsonObject = dict[str, JsonValue]
SHOWN_CHARACTERS = 60
"""Characters of a text that a message shows."""


def shorten(shown: object) -> str:
    """Return a value in few printable characters, whatever it is."""
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
    """Return the text on one line and without what could upset a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
