"""Columns that grow together, one row for each node slot.

A slot is a small integer that a node keeps for life; freed slots are used again. Every column has
`capacity` rows, whether a slot is taken or not, so that columns line up without index arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
SlotArray = npt.NDArray[np.intp]
Rows = SlotArray | slice
"""Some slots, or `ALL_ROWS`."""

ALL_ROWS = slice(None)
MIN_CAPACITY = 16


def grown(array: npt.NDArray[Any], rows: int, fill: Any = 0) -> npt.NDArray[Any]:
    """A copy of `array` with `rows` rows, the new ones filled."""
    bigger = np.full((rows, *array.shape[1:]), fill, dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def pick(array: npt.NDArray[Any], rows: Rows) -> npt.NDArray[Any]:
    """Some rows of a wide column; `take` is several times faster than indexing with an array."""
    return array[rows] if isinstance(rows, slice) else array.take(rows, axis=0)


def constant(value: int) -> IntArray:
    """A number as numpy takes it fastest beside short columns: it need not be converted."""
    return np.array(value, dtype=np.int64)


class Slots:
    """Names to slots, slots to names, and who must grow when slots run out."""

    def __init__(self) -> None:
        self.capacity = MIN_CAPACITY
        self.by_name: dict[str, int] = {}
        self.names: list[str] = [""] * MIN_CAPACITY
        self._free = list(range(MIN_CAPACITY - 1, -1, -1))
        self._on_growth: list[Callable[[int], None]] = []

    def __len__(self) -> int:
        return len(self.by_name)

    def on_growth(self, grow: Callable[[int], None]) -> None:
        """Call `grow(capacity)` whenever there are more slots."""
        self._on_growth.append(grow)

    def reserve(self, count: int) -> None:
        """Make room for `count` names in all, exactly if that is more than there is."""
        if count > self.capacity:
            self._grow(count)

    def take(self, name: str) -> int:
        """A slot for a new name."""
        if not self._free:
            self._grow(self.capacity + max(self.capacity // 4, MIN_CAPACITY))
        slot = self._free.pop()
        self.by_name[name] = slot
        self.names[slot] = name
        return slot

    def of(self, names: Iterable[str]) -> SlotArray:
        """The slots of those of these names that have one."""
        slots = [self.by_name[name] for name in names if name in self.by_name]
        return np.array(slots, dtype=np.intp)

    def release(self, name: str) -> None:
        """Give a name's slot back."""
        slot = self.by_name.pop(name)
        self.names[slot] = ""
        self._free.append(slot)

    def without(self, slots: Collection[int], rows: Rows) -> BoolArray:
        """Which of some rows are not among these slots."""
        if not isinstance(rows, slice) and len(rows) == 1:  # one node: no need for a whole column
            return np.array([int(rows[0]) not in slots], dtype=np.bool_)
        mask = np.ones(self.capacity, dtype=np.bool_)
        mask[list(slots)] = False
        return mask[rows]

    def _grow(self, capacity: int) -> None:
        fresh = range(capacity - 1, self.capacity - 1, -1)
        self._free[:0] = fresh
        self.names.extend([""] * (capacity - self.capacity))
        self.capacity = capacity
        for grow in self._on_growth:
            grow(capacity)
