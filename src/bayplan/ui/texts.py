"""Untrusted texts with a length limit: names, messages and labels may be long and arbitrary.

Nothing is escaped here, and the page never interprets them as markup. But none may be too long for
a page, or have invalid characters such as lone surrogates.
"""

from __future__ import annotations

from hashlib import blake2b

MAX_NAME = 520
"""The maximum length of a namespace and a name in Kubernetes, and some more."""
MAX_LINE = 1000
CUT = "…"


def name(text: str) -> str:
    """Return a name, shortened if needed."""
    return bounded(text, MAX_NAME)


def identity(text: str) -> str:
    """Return a unique name: two that are shortened still differ."""
    if len(text) <= MAX_NAME and text.isascii():
        return text
    whole = text.encode("utf-8", "backslashreplace")
    if len(text) <= MAX_NAME:
        return whole.decode()
    return f"{name(text[:400])}{CUT}{blake2b(whole, digest_size=8).hexdigest()}"


def line(text: str) -> str:
    """Return a message in one line, shortened if needed."""
    return bounded(" ".join(text[: MAX_LINE + 1].split()), MAX_LINE)


def bounded(text: str, limit: int) -> str:
    """Return the text, shortened to a length."""
    if len(text) > limit:
        text = text[: limit - 1] + CUT
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
