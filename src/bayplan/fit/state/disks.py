"""Disks that pods name directly and that two pods on one node may not share.

An EBS volume is never shared; GCE disks, iSCSI targets and RBD images are, if all mount them
read-only. An RBD image is the same if any of its monitors is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from bayplan.kube.pods import Pod
from bayplan.kube.volumes import Volume


class Disk(NamedTuple):
    """A disk as one pod mounts it."""

    name: tuple[str, ...]
    read_only: bool


def disks_of(pod: Pod) -> tuple[Disk, ...]:
    """The disks that a pod names directly."""
    return tuple(
        [
            disk
            for volume in pod.spec.volumes
            if volume.persistent_volume_claim is None
            for disk in _disks(volume)
        ]
    )


def _disks(volume: Volume) -> Iterable[Disk]:
    if volume.gce_persistent_disk is not None:
        gce = volume.gce_persistent_disk
        yield Disk(("gce", gce.pd_name), gce.read_only)
    if volume.aws_elastic_block_store is not None:
        yield Disk(("aws", volume.aws_elastic_block_store.volume_id), read_only=False)
    if volume.iscsi is not None:
        yield Disk(("iscsi", volume.iscsi.iqn), volume.iscsi.read_only)
    if volume.rbd is not None:
        rbd = volume.rbd
        for monitor in rbd.monitors:
            yield Disk(("rbd", monitor, rbd.pool, rbd.image), rbd.read_only)


class Disks:
    """Which nodes have which disks mounted, and how."""

    def __init__(self) -> None:
        self._users: dict[tuple[str, ...], Counter[tuple[int, bool]]] = {}

    def take(self, slot: int, disks: Iterable[Disk], sign: int) -> None:
        """A pod with these disks comes (+1) or leaves (-1)."""
        for disk in disks:
            users = self._users.setdefault(disk.name, Counter())
            users[slot, disk.read_only] += sign
            if not users[slot, disk.read_only]:
                del users[slot, disk.read_only]
                if not users:
                    del self._users[disk.name]

    def conflicting(self, disks: Iterable[Disk]) -> set[int]:
        """The slots where one of these disks is mounted in a way that excludes this one."""
        return {
            slot
            for disk in disks
            for slot, read_only in self._users.get(disk.name, ())
            if not (disk.read_only and read_only)
        }
