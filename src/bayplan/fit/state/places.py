"""Volumes in use by node and driver: one for each distinct volume, whoever uses it.

Pods on the node use volumes, and VolumeAttachments say that others are still (or already) there. A
column by driver holds how many places are taken; another holds the limit, and where some pods are
judged by other rules than the profile's, one more the limit by those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from bayplan.fit.rules import VolumeRules
from bayplan.fit.state.columns import IntArray, grown
from bayplan.fit.volumes.identity import VolumeId

LimitOf = Callable[[str, int, VolumeRules], int]


class DriverColumns:
    """One driver's places, taken and in all, by slot."""

    __slots__ = ("limit", "used")

    def __init__(self, capacity: int) -> None:
        self.used: IntArray = np.zeros(capacity, dtype=np.int64)
        self.limit: IntArray = np.zeros(capacity, dtype=np.int64)


class VolumePlaces:
    """Which volumes take a place where."""

    def __init__(self, capacity: int, limit_of: LimitOf, rules: VolumeRules) -> None:
        self._capacity = capacity
        self._rules = rules
        self._limit_of = limit_of
        self._drivers: dict[str, DriverColumns] = {}
        self._other_limits: dict[tuple[str, VolumeRules], IntArray] = {}
        self._users: dict[VolumeId, dict[int, int]] = {}
        self._attached: dict[int, dict[VolumeId, int]] = defaultdict(dict)

    def grow(self, capacity: int) -> None:
        """Follow the slots."""
        self._capacity = capacity
        for columns in self._drivers.values():
            columns.used = grown(columns.used, capacity)
            columns.limit = grown(columns.limit, capacity)
        for key, limits in self._other_limits.items():
            self._other_limits[key] = grown(limits, capacity)

    def set_node(self, slot: int) -> None:
        """The node of a slot, or its CSINode, has changed: ask for its limits again."""
        for driver, columns in self._drivers.items():
            columns.limit[slot] = self._limit_of(driver, slot, self._rules)
        for (driver, rules), limits in self._other_limits.items():
            limits[slot] = self._limit_of(driver, slot, rules)

    def columns(self, driver: str) -> DriverColumns:
        """A driver's columns."""
        found = self._drivers.get(driver)
        if found is None:
            found = DriverColumns(self._capacity)
            self._drivers[driver] = found
            for slot in range(self._capacity):
                found.limit[slot] = self._limit_of(driver, slot, self._rules)
        return found

    def limits(self, driver: str, rules: VolumeRules) -> IntArray:
        """A driver's limits by some rules; to be read at once."""
        if rules is self._rules or rules == self._rules:
            return self.columns(driver).limit
        found = self._other_limits.get((driver, rules))
        if found is None:
            every = (self._limit_of(driver, slot, rules) for slot in range(self._capacity))
            found = np.fromiter(every, dtype=np.int64, count=self._capacity)
            self._other_limits[driver, rules] = found
        return found

    def drivers(self) -> tuple[str, ...]:
        """Every driver that has been asked about or has a volume somewhere."""
        return tuple(self._drivers)

    def use(self, slot: int, volume: VolumeId, sign: int) -> None:
        """A pod on the slot's node starts (+1) or stops (-1) using a volume."""
        users = self._users.setdefault(volume, {})
        before = users.get(slot, 0)
        after = before + sign
        if after:
            users[slot] = after
        else:
            users.pop(slot, None)
            if not users:
                del self._users[volume]
        if (before == 0 or after == 0) and volume not in self._attached.get(slot, ()):
            self.columns(volume.driver).used[slot] += sign

    def attach(self, slot: int, volume: VolumeId, sign: int) -> None:
        """A VolumeAttachment of the slot's node comes (+1) or goes (-1)."""
        attached = self._attached[slot]
        before = attached.get(volume, 0)
        after = before + sign
        if after:
            attached[volume] = after
        else:
            del attached[volume]
        if (before == 0 or after == 0) and slot not in self._users.get(volume, ()):
            self.columns(volume.driver).used[slot] += sign

    def users(self, volume: VolumeId) -> dict[int, int]:
        """The slots with pods that use a volume."""
        return self._users.get(volume, {})

    def attached(self, slot: int) -> tuple[VolumeId, ...]:
        """The volumes that VolumeAttachments hold on a slot's node."""
        return tuple(self._attached.get(slot, ()))
