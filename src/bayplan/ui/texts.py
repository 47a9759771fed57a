"""Texts of strangers, bounded: names, messages and labels may be of any length and hold anything.

They stay data: nothing is escaped here, and the page never takes them for markup. But none may be
so long that a page chokes on it, nor hold what no text holds, such as half of a surrogate pair.
"""

from __future__ import annotations

from hashlib import blake2b

LONGEST_NAME = 520
"""A namespace and a name, each as long as Kubernetes lets them be, and some more."""
LONGEST_LINE = 1000
CUT = "…"


def name(text: str) -> str:
    """What something is called."""
    return bounded(text, LONGEST_NAME)


def identity(text: str) -> str:
    """A name that tells things apart: two that are cut to the same length still differ."""
    if len(text) <= LONGEST_NAME and text.isascii():
        return text
    whole = text.encode("utf-8", "backslashreplace")
    if len(text) <= LONGEST_NAME:
        return whole.decode()
    return f"{name(text[:400])}{CUT}{blake2b(whole, digest_size=8).hexdigest()}"


def line(text: str) -> str:
    """A message, in one line."""
    return bounded(" ".join(text[: LONGEST_LINE + 1].split()), LONGEST_LINE)


def bounded(text: str, most: int) -> str:
    """The text, or its beginning."""
    if len(text) > most:
        text = text[: most - 1] + CUT
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
