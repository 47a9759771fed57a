"""Errors about objects: which object, which field, which value."""

from __future__ import annotations

from bayplan.base.values import SHOWN_CHARACTERS, printable, shorten


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


def identify(kind: str, namespace: str, name: str) -> str:
    """`Kind namespace/name`, as far as it is known."""
    key = (
        f"{namespace[:SHOWN_CHARACTERS]}/{name[:SHOWN_CHARACTERS]}"
        if namespace
        else name[:SHOWN_CHARACTERS]
    )
    return f"{kind[:SHOWN_CHARACTERS] or 'object'} {key or '(unnamed)'}"
