"""Untrusted regular expressions, matched in linear time by RE2, the syntax that Go has too."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import re2

_MEMORY = 1 << 20
"""Memory limit of one pattern, in bytes."""


class PatternError(ValueError):
    """The reason why a text is not a valid pattern."""


class Pattern(Protocol):
    """A compiled pattern."""

    programsize: int
    """Instructions: at worst a search takes this many steps for each character."""

    def search(self, text: str) -> object | None:
        """Return the first match in a text, if any."""


@lru_cache(512)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern; raise PatternError if it is not valid."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as error:
        raise PatternError(_message(error)) from error
    return compiled


def _message(error: Exception) -> str:
    text = error.args[0] if error.args else ""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
