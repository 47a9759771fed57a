"""Errors about objects: which object, which field, which value."""

from __future__ import annotations

_SHOWN = 60


class ObjectError(ValueError):
    """An object that cannot be used as it is: who it is, the field, the value and what is wrong."""

    def __init__(self, identity: str, path: str, shown: object, problem: str) -> None:
        super().__init__(identity, path, problem)
        self.source = ""
        self.identity = identity
        self.path = path
        self.shown = shorten(shown)
        self.problem = problem

    def at(self, source: str) -> ObjectError:
        """The same error, knowing which file it came from."""
        self.source = source
        return self

    def __str__(self) -> str:
        places = ": ".join(filter(None, (self.source, self.identity, self.path)))
        value = f" (value {self.shown})" if self.shown else ""
        return printable(f"{places}: {self.problem}{value}")


def shorten(shown: object) -> str:
    """A value in few printable characters, whatever it is."""
    if shown is None:
        return ""
    if isinstance(shown, str):
        text = repr(shown[:_SHOWN])
        return f"{text}…" if len(shown) > _SHOWN else text
    if isinstance(shown, bool | float):
        return repr(shown)
    if isinstance(shown, int):
        return repr(shown) if shown.bit_length() < 256 else "a huge integer"
    return f"a {type(shown).__name__}"


def printable(text: str) -> str:
    """The text on one line and without what could upset a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def identify(kind: str, namespace: str, name: str) -> str:
    """`Kind namespace/name`, as far as it is known."""
    key = f"{namespace[:_SHOWN]}/{name[:_SHOWN]}" if namespace else name[:_SHOWN]
    return f"{kind[:_SHOWN] or 'object'} {key or '(unnamed)'}"
