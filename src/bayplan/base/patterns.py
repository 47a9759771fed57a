"""Patterns from strangers, matched in linear time: by RE2, whose language Go's is too."""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import re2

_MEMORY = 1 << 20
"""Bytes that one pattern may take."""


class PatternError(ValueError):
    """Why a text is no pattern."""


class Pattern(Protocol):
    """A compiled pattern."""

    programsize: int
    """Instructions: at worst a search takes this many steps for each letter."""

    def search(self, text: str) -> object | None:
        """Where it is found in a text, if anywhere."""


@lru_cache(512)
def compile_pattern(text: str) -> Pattern:
    """A pattern to search with; PatternError if it is none."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        compiled: Pattern = re2.compile(text, options)
    except re2.error as error:
        raise PatternError(_told(error)) from error
    return compiled


def _told(error: Exception) -> str:
    told = error.args[0] if error.args else ""
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
