"""A trail of what changed, for readers that each want only what is new to them.

Readers keep a cursor. The trail forgets its older half when it is trimmed; a reader whose cursor
has been forgotten is told so, and looks at everything.
"""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")
LONGEST = 1 << 16


class Trail(Generic[T]):
    """What changed, in order."""

    def __init__(self, longest: int = LONGEST) -> None:
        self._entries: list[T] = []
        self._forgotten = 0
        self._longest = longest
        self.note = self._entries.append
        """Say that something changed (the list's own append: this is the hottest call of all)."""

    @property
    def end(self) -> int:
        """The cursor of a reader that has seen everything."""
        return self._forgotten + len(self._entries)

    def after(self, cursor: int) -> list[T] | None:
        """What changed since a cursor; None if that is forgotten in part."""
        start = cursor - self._forgotten
        return None if start < 0 else self._entries[start:]

    @property
    def is_long(self) -> bool:
        """Whether it is worth trimming."""
        return len(self._entries) > self._longest

    def trim(self) -> None:
        """Forget the older half, if the trail has grown long."""
        if self.is_long:
            half = len(self._entries) // 2
            del self._entries[:half]
            self._forgotten += half
