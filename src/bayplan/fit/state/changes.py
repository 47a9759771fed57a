"""A log of which slots changed, so that a reader refreshes only those since it last looked.

A reader whose cursor has been forgotten, or that would have to refresh most rows anyway, is told to
refresh everything.
"""

from __future__ import annotations

import numpy as np

from bayplan.fit.state.columns import ALL_ROWS, Rows
from bayplan.fit.trail import Trail

FEW = 64


class ChangeLog(Trail[int]):
    """Slots in the order in which they changed."""

    def since(self, cursor: int, capacity: int) -> Rows | None:
        """The slots that changed since `cursor`: None if none did, ALL_ROWS if too many did."""
        start = cursor - self._forgotten
        count = len(self._entries) - start
        if count == 0:
            return None
        if start < 0 or count > capacity // 2:
            return ALL_ROWS
        changed = self._entries[start:]
        # A slot said twice is only refreshed twice; few are not worth telling apart.
        return np.array(changed if count <= FEW else list(set(changed)), dtype=np.intp)
