"""The undo log of forks: what was done since they began, to be undone in reverse."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

Undo = tuple[Callable[..., Any], tuple[Any, ...]]
K = TypeVar("K")
V = TypeVar("V")


class ForkJournal:
    """The undo log of open forks."""

    def __init__(self) -> None:
        self._undos: list[Undo] = []
        self._forks: list[int] = []

    @property
    def depth(self) -> int:
        """How deep forks nest; nothing is kept at 0."""
        return len(self._forks)

    def note(self, undo: Callable[..., Any], *arguments: Any) -> None:
        """Record how to undo what was just done."""
        if self._forks:
            self._undos.append((undo, arguments))

    def set(self, mapping: MutableMapping[K, V], key: K, value: V | None) -> None:
        """Set an entry, or (None) remove it if it is there."""
        if self._forks:
            self._undos.append((_assign, (mapping, key, mapping.get(key))))
        if value is None:
            mapping.pop(key, None)
        else:
            mapping[key] = value

    def begin(self) -> int:
        """Open a fork; returns how deep forks now nest."""
        self._forks.append(len(self._undos))
        return len(self._forks)

    def commit(self) -> None:
        """Close the innermost fork and keep what was done; an outer one can still undo it."""
        self._close()
        if not self._forks:
            self._undos.clear()

    def revert(self) -> None:
        """Close the innermost fork and undo what was done in it."""
        start = self._close()
        undos = self._undos
        while len(undos) > start:
            undo, arguments = undos.pop()
            undo(*arguments)

    def _close(self) -> int:
        if not self._forks:
            raise RuntimeError("no fork is open")
        return self._forks.pop()


def _assign(mapping: MutableMapping[K, V], key: K, value: V | None) -> None:
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value
