"""A log of which slots changed, so that a reader refreshes only those since it last looked.

Readers keep a cursor. The log forgets its older half when it grows long; a reader whose cursor has
been forgotten, or that would have to refresh most rows anyway, is told to refresh everything.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.state.columns import ALL_ROWS, Rows

LONGEST = 1 << 16
FEW = 64


class ChangeLog:
    """Slots in the order in which they changed."""

    def __init__(self) -> None:
        self._slots: list[int] = []
        self._forgotten = 0
        self.note = self._slots.append
        """Say that a slot changed (the list's own append: this is the hottest call of all)."""

    @property
    def end(self) -> int:
        """The cursor of a reader that has seen everything."""
        return self._forgotten + len(self._slots)

    def since(self, cursor: int, capacity: int) -> Rows | None:
        """The slots that changed since `cursor`: None if none did, ALL_ROWS if too many did."""
        start = cursor - self._forgotten
        count = len(self._slots) - start
        if count == 0:
            return None
        if start < 0 or count > capacity // 2:
            return ALL_ROWS
        changed = self._slots[start:]
        # A slot said twice is only refreshed twice; few are not worth telling apart.
        return np.array(changed if count <= FEW else list(set(changed)), dtype=np.intp)

    @property
    def is_long(self) -> bool:
        """Whether it is worth trimming."""
        return len(self._slots) > LONGEST

    def trim(self) -> None:
        """Forget the older half, if the log has grown long."""
        if self.is_long:
            half = len(self._slots) // 2
            del self._slots[:half]
            self._forgotten += half
