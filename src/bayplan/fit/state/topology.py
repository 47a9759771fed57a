"""Topology domains as small integers.

For each label key that somebody asks about, a column says which domain each node is in (its code),
or ABSENT if the node has no such label. A code is freed when its last node leaves, and used again.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bayplan.fit.state.columns import IntArray, grown

ABSENT = -1


class Topology:
    """One label key: which domain each slot is in."""

    def __init__(self, key: str, capacity: int) -> None:
        self.key = key
        self.codes: IntArray = np.full(capacity, ABSENT, dtype=np.int64)
        self.values: list[str] = []
        self.size = 0
        """How many codes have ever been used at once; counts by domain are this long."""
        self._code_of: dict[str, int] = {}
        self._members: list[int] = []
        self._free: list[int] = []

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        self.codes = grown(self.codes, capacity, ABSENT)

    def join(self, slot: int, labels: Mapping[str, str]) -> None:
        """A node with these labels takes this slot."""
        value = labels.get(self.key)
        if value is None:
            return
        code = self._code_of.get(value)
        if code is None:
            code = self._new_code(value)
        self._members[code] += 1
        self.codes[slot] = code

    def leave(self, slot: int) -> None:
        """The slot's node leaves its domain."""
        code = int(self.codes[slot])
        if code == ABSENT:
            return
        self.codes[slot] = ABSENT
        self._members[code] -= 1
        if self._members[code] == 0:
            del self._code_of[self.values[code]]
            self._free.append(code)

    def slots_of(self, value: str) -> list[int]:
        """The slots whose nodes have this value."""
        code = self._code_of.get(value)
        return [] if code is None else np.flatnonzero(self.codes == code).tolist()

    def _new_code(self, value: str) -> int:
        if self._free:
            code = self._free.pop()
            self.values[code] = value
        else:
            code = self.size
            self.size += 1
            self.values.append(value)
            self._members.append(0)
        self._code_of[value] = code
        return code
