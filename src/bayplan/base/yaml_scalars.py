"""What a plain YAML scalar means, as Kubernetes' own tools read it before they make JSON of it.

That is YAML 1.1 with the exceptions that matter in practice: `1e3` is a number, times of day are
not numbers in base 60, and dates stay text. A lone `y` or `n` stays text too: what it would break
is names, and no field wants it as a truth.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
for _true, _false in (("true", "false"), ("yes", "no"), ("on", "off")):
    _WORDS |= {_true: True, _true.capitalize(): True, _true.upper(): True}
    _WORDS |= {_false: False, _false.capitalize(): False, _false.upper(): False}

_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_LONGEST_NUMBER = 64
_LEGACY_OCTAL = re.compile(r"\A([-+]?)0([0-7]+)\Z")


def plain_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if len(text) > _LONGEST_NUMBER:
        return text
    return _resolve(text)


def key_text(value: Scalar) -> str | None:
    """A scalar as the key of a JSON object; None if it cannot be one."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    return value


@lru_cache(1 << 14)
def _resolve(text: str) -> Scalar:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        return int(_LEGACY_OCTAL.sub(r"\g<1>0o\2", digits), 0)
    if _FLOAT.fullmatch(digits):
        number = float(digits)
        return number if math.isfinite(number) else text
    return text
