"""Attachments in use and attach limits, by node and driver, with the objects behind them.

Each distinct volume counts once, however many use it: pods on the node use volumes, and
VolumeAttachments show that others are still (or already) there. A column by driver holds how many
attach slots are in use; another holds the limit, and where some pods are judged by other rules than
the profile's, one more the limit by those. CSINodes say which drivers are registered where.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

import numpy as np

from bayplan.fit.indexes import NameIndex
from bayplan.fit.profile import VolumeRules
from bayplan.fit.state.columns import IntArray, grown
from bayplan.fit.volumes.identity import VolumeId
from bayplan.kube.storage import CSINode, VolumeAttachment


class VolumeAttachments:
    """VolumeAttachments by name, node and volume."""

    def __init__(self) -> None:
        self.by_name: dict[str, VolumeAttachment] = {}
        self._of_node = NameIndex()
        self._of_volume = NameIndex()

    def put(self, attachment: VolumeAttachment) -> None:
        """Add an attachment that is not there."""
        self.by_name[attachment.name] = attachment
        self._of_node.add(attachment.spec.node_name, attachment.name)
        self._of_volume.add(volume_name(attachment), attachment.name)

    def remove(self, name: str) -> VolumeAttachment | None:
        """Take an attachment out; returns it, if it was there."""
        attachment = self.by_name.pop(name, None)
        if attachment is not None:
            self._of_node.discard(attachment.spec.node_name, name)
            self._of_volume.discard(volume_name(attachment), name)
        return attachment

    def of_node(self, node: str) -> list[VolumeAttachment]:
        """The attachments of a node."""
        return [self.by_name[name] for name in sorted(self._of_node.of(node))]

    def of_volume(self, volume: str) -> list[VolumeAttachment]:
        """The attachments of a persistent volume."""
        return [self.by_name[name] for name in sorted(self._of_volume.of(volume))]


def volume_name(attachment: VolumeAttachment) -> str:
    """The name of the volume that is to be attached; empty for one without a PersistentVolume."""
    return attachment.spec.source.persistent_volume_name or ""


class CSINodes:
    """The CSINode of each node that has one."""

    def __init__(self) -> None:
        self.by_name: dict[str, CSINode] = {}
        self.registered: Counter[str] = Counter()
        """On how many nodes each CSI driver has registered."""
        self.version = 0
        """Moves whenever a driver registers for the first time, or is gone from the last node."""

    def set(self, name: str, csinode: CSINode | None) -> None:
        """A node's CSINode comes, changes or (None) goes."""
        self._register(self.by_name.pop(name, None), -1)
        self._register(csinode, 1)
        if csinode is not None:
            self.by_name[name] = csinode

    def _register(self, csinode: CSINode | None, sign: int) -> None:
        for driver in csinode.spec.drivers if csinode else ():
            before = self.registered[driver.name]
            self.registered[driver.name] = before + sign
            if before == 0 or before + sign == 0:
                self.version += 1


LimitOf = Callable[[str, int, VolumeRules], int]


class DriverColumns:
    """One driver's attachments in use and limit, by slot."""

    __slots__ = ("limit", "used")

    def __init__(self, capacity: int) -> None:
        self.used: IntArray = np.zeros(capacity, dtype=np.int64)
        self.limit: IntArray = np.zeros(capacity, dtype=np.int64)


class AttachedVolumes:
    """Which volumes take an attach slot on which node."""

    def __init__(self, capacity: int, limit_of: LimitOf, rules: VolumeRules) -> None:
        self._capacity = capacity
        self._rules = rules
        self._limit_of = limit_of
        self._drivers: dict[str, DriverColumns] = {}
        self._other_limits: dict[tuple[str, VolumeRules], IntArray] = {}
        self._users: dict[VolumeId, dict[int, int]] = {}
        self._attached: dict[int, dict[VolumeId, int]] = defaultdict(dict)
        self._attached_on: dict[VolumeId, set[int]] = {}

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
        """Return every driver that has columns."""
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
            self._attached_on.setdefault(volume, set()).add(slot)
        else:
            del attached[volume]
            self._attached_on[volume].discard(slot)
            if not self._attached_on[volume]:
                del self._attached_on[volume]
        if (before == 0 or after == 0) and slot not in self._users.get(volume, ()):
            self.columns(volume.driver).used[slot] += sign

    def holders(self, volume: VolumeId, rules: VolumeRules) -> list[int]:
        """Return the slots on which a volume takes an attach slot that one more pod can use."""
        users = self._users.get(volume, {})
        if not rules.attached_once or volume not in self._attached_on:
            return list(users)
        return [*users, *self._attached_on[volume]]

    def is_held(self, volume: VolumeId) -> bool:
        """Whether pods on any node use a volume, or it is attached to one."""
        return volume in self._users or volume in self._attached_on

    def attached(self, slot: int) -> tuple[VolumeId, ...]:
        """The volumes that VolumeAttachments hold on a slot's node."""
        return tuple(self._attached.get(slot, ()))
